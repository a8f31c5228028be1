// Package command is the sandbox's command line.
package command

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

const (
	// defaultDir is in the working folder, so that each checkout has its own.
	defaultDir = ".sandbox"
	// dirVariable names the folder for all commands of a shell.
	dirVariable = "SANDBOX_DIR"
)

// New returns the command. applets are the names of the programs that the
// executable can be.
func New(applets []string) *cobra.Command {
	root := &cobra.Command{
		Use:   "sandbox",
		Short: "A Kubernetes cluster with simulated GPU nodes on this machine",
		Long: "A Kubernetes cluster with simulated GPU nodes on this machine: the real etcd, API server,\n" +
			"controllers and scheduler, KWOK for the nodes, and gpu-orchestrator's manager with its own\n" +
			"service account. No container runtime is needed, and nothing is left when it ends.",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(up(), status(), down(), kubectl(), assets(applets))
	return root
}

// dirFlag adds --dir.
func dirFlag(cmd *cobra.Command) *string {
	dir := defaultDir
	if fromEnv := os.Getenv(dirVariable); fromEnv != "" {
		dir = fromEnv
	}
	return cmd.Flags().String("dir", dir, "folder of the sandbox ($"+dirVariable+")")
}

func absolute(dir string) (string, error) {
	path, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("resolving the folder %s: %w", dir, err)
	}
	return path, nil
}

// executable is this program's own file, with symlinks resolved, so that children
// are started by what runs and not by a name that may change.
func executable() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding this executable: %w", err)
	}
	path, err = filepath.EvalSymlinks(path)
	if err != nil {
		return "", fmt.Errorf("finding this executable: %w", err)
	}
	return path, nil
}

// program is how to call this program again: by its name, or through go run, whose binaries
// have names that nobody wants to type.
func program() string {
	if strings.Contains(os.Args[0], "go-build") {
		return "go run ./cmd/sandbox"
	}
	return os.Args[0]
}
