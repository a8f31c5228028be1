// Package cli is warp, the command line of gpu-orchestrator: one file a command. It parses and
// prints; what a command knows comes from other packages.
package cli

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/reyisjones/gpu-orchestrator/internal/problem"
)

// The exit codes of warp.
const (
	// Done: the question was answered, whatever the answer is.
	Done = 0
	// Fault: warp itself failed.
	Fault = 1
	// BadInput: what warp was given is wrong.
	BadInput = 2
	// Unexpected: an answer is not what its scenario expects; Waiting: it is that something waits.
	Unexpected = 3
	Waiting    = 3
)

// Process is what a command uses of the process it runs in.
type Process struct {
	// Name is what the program was called as; as kubectl-warp it is a plugin of kubectl.
	Name           string
	Args           []string
	In             io.Reader
	Out, Err       io.Writer
	Clock          func() time.Time
	LookupVariable func(string) (string, bool)
}

// Run runs warp and returns the exit code.
func Run(p Process) (code int) {
	defer func() {
		if broken := recover(); broken != nil {
			fmt.Fprintln(p.Err, "warp: internal error:", broken)
			code = Fault
		}
	}()
	root := newRoot(p)
	root.SetArgs(p.Args)
	root.SetIn(p.In)
	root.SetOut(p.Out)
	root.SetErr(p.Err)
	err := root.Execute()
	if err == nil {
		return Done
	}
	if errors.Is(err, errWaiting) {
		return Waiting
	}
	var problems problem.Problems
	if errors.As(err, &problems) {
		fmt.Fprintln(p.Err, problems)
		fmt.Fprintln(p.Err, "warp: the input is wrong; nothing was answered")
		return BadInput
	}
	fmt.Fprintln(p.Err, "warp:", err)
	var (
		f fault
		u unexpected
	)
	switch {
	case errors.As(err, &f):
		return Fault
	case errors.As(err, &u):
		return Unexpected
	}
	return BadInput
}

// fault marks an error that is not the user's. All others are: cobra's are about flags and
// commands, and a file that cannot be read is not there.
type fault struct{ error }

func (f fault) Unwrap() error { return f.error }

// unexpected marks that everything was answered, but not as the scenarios expect.
type unexpected struct{ error }

func newRoot(p Process) *cobra.Command {
	root := &cobra.Command{
		Use:   "warp",
		Short: "Place GPU workloads, and ask what would happen",
		Long: `warp is the command line of gpu-orchestrator. It answers placement questions
with the engine that places workloads in a cluster.`,
		Version:       version(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	if p.Name == "kubectl-warp" {
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl warp"}
	}
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	root.AddCommand(newExplain(p), newSim(p), newVersion())
	return root
}
