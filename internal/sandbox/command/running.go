package command

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/reyisjones/gpu-orchestrator/internal/sandbox/controlplane"
	"github.com/reyisjones/gpu-orchestrator/internal/sandbox/instance"
)

func status() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Say what runs in the folder",
		Args:  cobra.NoArgs,
	}
	dir := dirFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		path, err := absolute(*dir)
		if err != nil {
			return err
		}
		state, err := instance.Find(path)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return printState(cmd, state)
	}
	return cmd
}

func printState(cmd *cobra.Command, s instance.State) error {
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	phase := "starting"
	if s.Ready {
		phase = "ready"
	}
	fmt.Fprintf(w, "state\t%s, since %s\n", phase, s.Started.Local().Format(time.DateTime))
	fmt.Fprintf(w, "pid\t%d\n", s.PID)
	fmt.Fprintf(w, "nodes\t%d (%s)\n", s.Nodes, s.Profile)
	for _, row := range [][2]string{
		{"API server", s.APIServer}, {"kubeconfig", s.Kubeconfig},
		{"metrics", s.Metrics}, {"health", s.Health}, {"logs", s.Logs},
	} {
		if row[1] != "" {
			fmt.Fprintf(w, "%s\t%s\n", row[0], row[1])
		}
	}
	for _, p := range s.Processes {
		fmt.Fprintf(w, "process\t%s (pid %d)\n", p.Name, p.PID)
	}
	return w.Flush()
}

func down() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "down",
		Short: "End the cluster that runs in the folder",
		Args:  cobra.NoArgs,
	}
	dir := dirFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		path, err := absolute(*dir)
		if err != nil {
			return err
		}
		state, err := instance.Down(cmd.Context(), path)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		fmt.Fprintf(cmd.OutOrStdout(), "ended the sandbox with pid %d\n", state.PID)
		return nil
	}
	return cmd
}

func kubectl() *cobra.Command {
	return &cobra.Command{
		Use:   "kubectl ...",
		Short: "Run kubectl against the cluster",
		Long: "Run kubectl against the cluster of the first that is given: kubectl's own --kubeconfig,\n" +
			"--dir before kubectl's words, $" + dirVariable + ", $KUBECONFIG; else of the folder " + defaultDir + ".",
		Example: "  sandbox kubectl get gpuworkloads --watch\n" +
			"  sandbox kubectl --dir /tmp/other get nodes",
		DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			return execKubectl(args)
		},
	}
}

// execKubectl becomes kubectl.
func execKubectl(args []string) error {
	dir := os.Getenv(dirVariable)
	// --dir is the sandbox's own flag and comes before kubectl's words.
	if len(args) > 0 {
		if value, ok := strings.CutPrefix(args[0], "--dir="); ok {
			dir, args = value, args[1:]
		} else if args[0] == "--dir" && len(args) > 1 {
			dir, args = args[1], args[2:]
		}
	}
	if err := chooseKubeconfig(dir, args); err != nil {
		return err
	}
	self, err := executable()
	if err != nil {
		return err
	}
	return fmt.Errorf("running kubectl: %w", syscall.Exec(self, append([]string{"kubectl"}, args...), os.Environ()))
}

// chooseKubeconfig points kubectl to the sandbox of dir or, where the person has
// named neither a folder nor a kubeconfig, to that of the default folder.
func chooseKubeconfig(dir string, args []string) error {
	chosen := slices.ContainsFunc(args, func(arg string) bool {
		return arg == "--"+clientcmd.RecommendedConfigPathFlag || strings.HasPrefix(arg, "--"+clientcmd.RecommendedConfigPathFlag+"=")
	})
	if chosen || dir == "" && os.Getenv(clientcmd.RecommendedConfigPathEnvVar) != "" {
		return nil
	}
	if dir == "" {
		dir = defaultDir
	}
	path, err := absolute(dir)
	if err != nil {
		return err
	}
	if _, err := instance.Find(path); err != nil {
		return fmt.Errorf("%s: %w; start one with: sandbox up", path, err)
	}
	return os.Setenv(clientcmd.RecommendedConfigPathEnvVar, controlplane.Layout{Dir: path}.Kubeconfig())
}

func assets(applets []string) *cobra.Command {
	return &cobra.Command{
		Use:   "assets DIR",
		Short: "Lay out etcd, kube-apiserver and kubectl for envtest",
		Long: "Lay out etcd, kube-apiserver and kubectl, and the other programs, in a folder, as\n" +
			"controller-runtime's envtest wants them in KUBEBUILDER_ASSETS. They are links to this file.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := absolute(args[0])
			if err != nil {
				return err
			}
			self, err := executable()
			if err != nil {
				return err
			}
			if err := link(self, dir, applets); err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), dir)
			return nil
		},
	}
}

// link makes a symlink for each name, in place of what an earlier build left.
func link(target, dir string, names []string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making the folder of the assets: %w", err)
	}
	for _, name := range names {
		path := filepath.Join(dir, name)
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("replacing %s: %w", path, err)
		}
		if err := os.Symlink(target, path); err != nil {
			return fmt.Errorf("linking %s: %w", path, err)
		}
	}
	return nil
}
