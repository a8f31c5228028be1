package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reyisjones/gpu-orchestrator/internal/sim"
)

// placeFlags are the flags of warp sim place.
type placeFlags struct {
	files            []string
	output, strategy string
}

func newSimPlace(p Process) *cobra.Command {
	var flags placeFlags
	cmd := &cobra.Command{
		Use:   "place -f FILE…",
		Short: "Say where the pods of a scenario would go, or why there is no room",
		Long: `place answers scenario files: a placement question with the facts it depends on,
as YAML or JSON. The answer comes from the engine that places workloads in a
cluster. docs/scenario.md describes the files and the answers.

All files are read and checked before anything is answered. The exit code is 0
if every question was answered, whether there is room or not, 2 if a file or a
flag is wrong, and 1 if warp itself failed.`,
		Example: `  # Where would the gang go?
  warp sim place -f examples/scenarios/02-gang-in-one-leaf.yaml

  # The same by another strategy
  warp sim place -f examples/scenarios/02-gang-in-one-leaf.yaml --strategy leastLoaded

  # Many questions at once, one JSON object a line, for a program
  warp sim place -f monday.yaml -f tuesday.yaml -o jsonl

  # From another program, with everything that led to the answer
  generate-scenario | warp sim place -f - -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runSimPlace(cmd, p, flags) },
	}
	f := cmd.Flags()
	f.StringArrayVarP(&flags.files, "filename", "f", nil, "scenario file, - for standard input; may be given several times")
	f.StringVarP(&flags.output, "output", "o", string(sim.Table), "form of the answer: "+strings.Join(sim.Formats(), ", "))
	f.StringVar(&flags.strategy, "strategy", sim.DefaultStrategy, "strategy of requests that name none: "+strings.Join(sim.Strategies(), ", "))
	for name, values := range map[string][]string{"output": sim.Formats(), "strategy": sim.Strategies()} {
		// The only error is a flag that is not there.
		if err := cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
			panic(err)
		}
	}
	return cmd
}

func runSimPlace(cmd *cobra.Command, p Process, flags placeFlags) error {
	switch {
	case len(flags.files) == 0:
		return errors.New("no scenario given: name a file with -f, or - for standard input")
	case !slices.Contains(sim.Formats(), flags.output):
		return fmt.Errorf("unknown output %q: choose one of %s", flags.output, strings.Join(sim.Formats(), ", "))
	case !slices.Contains(sim.Strategies(), flags.strategy):
		return fmt.Errorf("unknown strategy %q: choose one of %s", flags.strategy, strings.Join(sim.Strategies(), ", "))
	}
	inputs := make([]sim.Input, len(flags.files))
	for i, name := range flags.files {
		var err error
		if inputs[i], err = readInput(cmd.InOrStdin(), name); err != nil {
			return err
		}
	}
	scenarios, err := sim.Read(inputs...)
	if err != nil {
		return err
	}
	format := sim.Format(flags.output)
	options := sim.Options{Strategy: flags.strategy, Explain: format != sim.JSONLines, Clock: p.Clock}
	results := make([]*sim.Result, len(scenarios))
	for i, s := range scenarios {
		if results[i], err = sim.Place(s, options); err != nil {
			return fault{err}
		}
	}
	if err := sim.Render(cmd.OutOrStdout(), format, p.style(), results...); err != nil {
		return fault{fmt.Errorf("writing the answer: %w", err)}
	}
	return nil
}

// readInput reads a file, or standard input for "-".
func readInput(stdin io.Reader, name string) (sim.Input, error) {
	if name == "-" {
		data, err := io.ReadAll(stdin)
		if err != nil {
			return sim.Input{}, fmt.Errorf("reading standard input: %w", err)
		}
		return sim.Input{Name: "stdin", Data: data}, nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return sim.Input{}, fmt.Errorf("reading a scenario: %w", err)
	}
	return sim.Input{Name: name, Data: data}, nil
}
