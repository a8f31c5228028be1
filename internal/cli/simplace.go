package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reyisjones/gpu-orchestrator/internal/problem"
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

All files are read and checked before anything is answered. The exit code is

  0  if every question was answered, whether there is room or not;
  1  if warp itself failed;
  2  if a file or a flag is wrong; nothing was answered;
  3  if every question was answered, but not all as their scenarios expect.`,
		Example: `  # Where would the gang go?
  warp sim place -f examples/scenarios/02-gang-in-one-leaf.yaml

  # The same by another strategy
  warp sim place -f examples/scenarios/02-gang-in-one-leaf.yaml --strategy leastLoaded

  # Many questions at once, one JSON object a line, for a program
  warp sim place -f monday.yaml -f tuesday.yaml -o jsonl

  # From another program, with everything that led to the answer
  generate-scenario | warp sim place -f - -o json`,
		Args: noArgs,
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

// noArgs refuses a file that is named without its flag.
func noArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%q is not for this command: use -f FILE to name a scenario", args[0])
	}
	return nil
}

func runSimPlace(cmd *cobra.Command, p Process, flags placeFlags) error {
	scenarios, err := readScenarios(cmd.InOrStdin(), flags)
	if err != nil {
		return err
	}
	format := sim.Format(flags.output)
	options := sim.Options{Strategy: flags.strategy, Explain: format != sim.JSONLines, Clock: p.Clock}
	results := make([]*sim.Result, len(scenarios))
	surprises := 0
	for i, s := range scenarios {
		if results[i], err = answer(s, options); err != nil {
			return fault{err}
		}
		if x := results[i].Expectation; x != nil && !x.Agrees {
			surprises++
		}
	}
	// Everything or nothing is printed.
	var out bytes.Buffer
	if err = sim.Render(&out, format, p.style(), results...); err == nil {
		_, err = out.WriteTo(cmd.OutOrStdout())
	}
	if err != nil {
		return fault{fmt.Errorf("writing the answer: %w", err)}
	}
	if surprises > 0 {
		return unexpected{fmt.Errorf("%d of %d answers not as expected", surprises, len(results))}
	}
	return nil
}

// answer is sim.Place, but that a panic of the engine is an error, too, and names the scenario:
// that is all that is needed to repeat it.
func answer(s *sim.Scenario, options sim.Options) (r *sim.Result, err error) {
	defer func() {
		if broken := recover(); broken != nil {
			err = fmt.Errorf("internal error: answering %s: %v", s.Name, broken)
		}
	}()
	return sim.Place(s, options)
}

// readScenarios checks the flags, and reads all files: what is wrong with any is said of all.
func readScenarios(stdin io.Reader, flags placeFlags) ([]*sim.Scenario, error) {
	switch {
	case len(flags.files) == 0:
		return nil, errors.New("no scenario given: name a file with -f, or - for standard input")
	case !slices.Contains(sim.Formats(), flags.output):
		return nil, fmt.Errorf("unknown output %q: choose one of %s", flags.output, strings.Join(sim.Formats(), ", "))
	case !slices.Contains(sim.Strategies(), flags.strategy):
		return nil, fmt.Errorf("unknown strategy %q: choose one of %s", flags.strategy, strings.Join(sim.Strategies(), ", "))
	case slices.Index(flags.files, "-") != lastIndex(flags.files, "-"):
		return nil, errors.New("-f - is there twice, but standard input can be read once: put all scenarios into it")
	}
	var (
		inputs     []sim.Input
		unreadable problem.Problems
	)
	for _, name := range flags.files {
		in, err := readInput(stdin, name)
		if err != nil {
			unreadable = append(unreadable, problem.Problem{File: in.Name, Text: "cannot be read: " + err.Error()})
			continue
		}
		inputs = append(inputs, in)
	}
	scenarios, err := sim.Read(inputs...)
	var problems problem.Problems
	if len(unreadable) > 0 && (err == nil || errors.As(err, &problems)) {
		return nil, append(unreadable, problems...)
	}
	return scenarios, err
}

func lastIndex(list []string, value string) int {
	for i := len(list) - 1; i >= 0; i-- {
		if list[i] == value {
			return i
		}
	}
	return -1
}

// readInput reads a file, or standard input for "-". The name is known if it cannot be read, too.
func readInput(stdin io.Reader, name string) (in sim.Input, err error) {
	if name == "-" {
		in.Name = "stdin"
		in.Data, err = io.ReadAll(stdin)
		return in, err
	}
	in.Name = name
	if in.Data, err = os.ReadFile(name); err != nil {
		// The path is said already.
		var of *fs.PathError
		if errors.As(err, &of) {
			err = of.Err
		}
	}
	return in, err
}
