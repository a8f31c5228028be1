package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/reyisjones/gpu-orchestrator/internal/sandbox"
	"github.com/reyisjones/gpu-orchestrator/internal/sandbox/cluster"
	"github.com/reyisjones/gpu-orchestrator/internal/sandbox/console"
)

// maxNodes is as many as the simulated network has addresses for.
const maxNodes = 65536

func up() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Bring the cluster up and keep it until Ctrl-C",
		Example: "  sandbox up --demo\n" +
			"  sandbox up --nodes 1000 --profile dgx-h100\n" +
			"  sandbox up --demo --once",
		Args: cobra.NoArgs,
	}
	config := sandbox.Config{}
	dir := dirFlag(cmd)
	flags := cmd.Flags()
	flags.IntVar(&config.Nodes, "nodes", 8, "number of GPU nodes")
	flags.IntVar(&config.GPUsPerNode, "gpus-per-node", 8, "GPUs of each node whose kind does not fix them")
	profile := flags.String("profile", "dgx-h100", "what the nodes are:\n"+profileHelp())
	flags.BoolVar(&config.Demo, "demo", false, "run a few GPU workloads and show what happens")
	flags.BoolVar(&config.Once, "once", false, "with --demo: end after it; the exit code says whether it succeeded")
	flags.StringVar(&config.Scheduler, "scheduler", sandbox.Stock, "who schedules: stock, second (ours beside it, for pods that name it) or only (ours)")
	noManager := flags.Bool("no-manager", false, "install gpu-orchestrator's resources but do not run its manager")
	flags.BoolVar(&config.Extender, "extender", false, "have the stock scheduler ask gpu-orchestrator's extender about GPU pods")
	flags.BoolVar(&config.ExtenderIgnorable, "extender-ignorable", false, "with --extender: place GPU pods without it while it does not answer")
	flags.StringArrayVar(&config.ManagerArgs, "manager-arg", nil, "further argument of the manager, may be repeated")

	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var err error
		if config.Profile, err = cluster.ProfileNamed(*profile); err != nil {
			return err
		}
		config.Manager = !*noManager
		if err := validate(config); err != nil {
			return err
		}
		if config.Dir, err = absolute(*dir); err != nil {
			return err
		}
		config.DefaultDir = !cmd.Flags().Changed("dir")
		config.Program = program()
		if config.Executable, err = executable(); err != nil {
			return err
		}
		return run(cmd.Context(), sandbox.New(config, console.New(cmd.OutOrStdout())))
	}
	return cmd
}

func validate(config sandbox.Config) error {
	switch {
	case config.Nodes < 1 || config.Nodes > maxNodes:
		return fmt.Errorf("--nodes must be between 1 and %d", maxNodes)
	case config.GPUsPerNode < 1:
		return errors.New("--gpus-per-node must be at least 1")
	case config.Once && !config.Demo:
		return errors.New("--once is for --demo: without it there is nothing to wait for")
	case config.ExtenderIgnorable && !config.Extender:
		return errors.New("--extender-ignorable is for --extender")
	case config.Extender && config.Scheduler == sandbox.Only:
		return errors.New("--extender is for the stock scheduler: with --scheduler only there is none")
	case !slices.Contains([]string{sandbox.Stock, sandbox.Second, sandbox.Only}, config.Scheduler):
		return fmt.Errorf("--scheduler is %q: choose stock, second or only", config.Scheduler)
	case config.Demo && !config.Manager:
		return errors.New("--demo needs the manager: leave --no-manager out")
	}
	return nil
}

func profileHelp() string {
	var b strings.Builder
	for _, p := range cluster.Profiles() {
		fmt.Fprintf(&b, "%-9s %s\n", p.Name, p.Description)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// run ends the sandbox in good order on the first signal, and at once on the
// second.
func run(parent context.Context, box *sandbox.Sandbox) error {
	ctx, cancel := context.WithCancel(parent)
	defer cancel()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	go func() {
		for n := range 2 {
			select {
			case <-signals:
			case <-parent.Done():
				return
			}
			if n == 0 {
				cancel()
			} else {
				box.Kill()
			}
		}
	}()
	return box.Run(ctx)
}
