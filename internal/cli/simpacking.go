package cli

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reyisjones/gpu-orchestrator/internal/sim/chart"
	"github.com/reyisjones/gpu-orchestrator/internal/sim/packing"
	"github.com/reyisjones/gpu-orchestrator/internal/sim/table"
)

// packingFlags are the flags of warp sim packing.
type packingFlags struct {
	nodes, published, plot string
	pods, policies         []string
	seeds, output          string
	tune                   float64
}

func newSimPacking(p Process) *cobra.Command {
	var flags packingFlags
	cmd := &cobra.Command{
		Use:   "packing --nodes FILE --pods FILE…",
		Short: "Fill a cluster with the pods of a trace, and say how many GPUs stay idle",
		Long: `packing lets the pods of a list arrive one by one, in random order, until they
have asked for more GPUs than there are. They stay, and what finds no room is
turned away. It compares policies by the GPUs that nobody could use in the end:
the experiment of FGD (USENIX ATC'23). docs/packing.md describes it.

The strategies of gpu-orchestrator run as in a cluster; the policies of the
paper are played beside them: ` + strings.Join(packing.Policies(), ", ") + `.
` + packing.All + `, ` + packing.Published + ` and ` + packing.Strategies + ` stand for several.

The exit code is

  0  if everything was played;
  1  if warp itself failed;
  2  if a file or a flag is wrong; nothing was played;
  3  if everything was played, and --published tells otherwise: a policy of the
     paper is not within two standard deviations of what was published, or
     fragmentationAware leaves more idle than FGD did.`,
		Example: `  # fragmentationAware and FGD, ten seeds
  warp sim packing --nodes nodes.csv --pods pods.csv

  # All policies, with a picture
  warp sim packing --nodes nodes.csv --pods pods.csv --policy all --plot packing.html

  # Two workloads against published results
  warp sim packing --nodes nodes.csv --pods default.csv --pods cpu100.csv \
    --policy published,fragmentationAware --published expected_summary.csv

  # Every percent of every run, for a program
  warp sim packing --nodes nodes.csv --pods pods.csv --seeds 1-3,7 -o csv`,
		Args: noFiles,
		RunE: func(cmd *cobra.Command, _ []string) error { return runSimPacking(cmd, p, flags) },
	}
	f := cmd.Flags()
	f.StringVar(&flags.nodes, "nodes", "", "nodes of the cluster: sn or name, cpu_milli, memory_mib, gpu, model")
	f.StringArrayVar(&flags.pods, "pods", nil, "pods of a workload: name, cpu_milli, memory_mib, num_gpu, gpu_milli, gpu_spec; may be given several times")
	f.StringSliceVar(&flags.policies, "policy", packing.DefaultPolicies(), "policies to compare")
	f.StringVar(&flags.seeds, "seeds", "42-51", "seeds, each of which is another order of pods and nodes: 42-51 or 1,7,20-29")
	f.Float64Var(&flags.tune, "tune", 1.3, "what the pods ask for in the end, as a multiple of the GPUs")
	f.StringVarP(&flags.output, "output", "o", string(table.Text), "form of the results: "+strings.Join(table.Formats(), ", "))
	f.StringVar(&flags.plot, "plot", "", "draw the results into a file that ends in "+strings.Join(chart.Formats(), ", "))
	f.StringVar(&flags.published, "published", "", "published results to compare with: metric, workload, policy, arrive_pct, mean, sd")
	policies := append(packing.Policies(), packing.All, packing.Published, packing.Strategies)
	for name, values := range map[string][]string{"output": table.Formats(), "policy": policies} {
		// The only error is a flag that is not there.
		if err := cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
			panic(err)
		}
	}
	return cmd
}

// noFiles refuses a file that is named without its flag.
func noFiles(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%q is not for this command: use --nodes FILE and --pods FILE to name files", args[0])
	}
	return nil
}

func runSimPacking(cmd *cobra.Command, p Process, flags packingFlags) error {
	options, err := flags.check()
	if err != nil {
		return err
	}
	var bar progress
	options.Done = func() { bar.step() }
	experiment, err := flags.experiment(cmd.InOrStdin(), options)
	if err != nil {
		return err
	}
	if err := checkPicture(flags.plot); err != nil {
		return err
	}
	bar = newProgress(p, experiment.Runs(), "runs")
	results, err := experiment.Play(cmd.Context())
	bar.end()
	if err != nil {
		return fault{err}
	}
	if err := writePicture(flags.plot, results.Draw); err != nil {
		return fault{fmt.Errorf("writing the picture: %w", err)}
	}
	var out bytes.Buffer
	if err = table.Render(&out, table.Format(flags.output), results); err == nil {
		_, err = out.WriteTo(cmd.OutOrStdout())
	}
	if err != nil {
		return fault{fmt.Errorf("writing the results: %w", err)}
	}
	if c := results.Published; c != nil && c.Missed+c.Worse > 0 {
		return unexpected{fmt.Errorf("%d of %d published figures not found again, more GPUs idle than with FGD on %d of %d workloads",
			c.Missed, len(c.Reproduced), c.Worse, len(c.Margins))}
	}
	return nil
}

// check returns what the flags ask for, as far as no file has to be read for it.
func (flags *packingFlags) check() (packing.Options, error) {
	o := packing.Options{Policies: flags.policies, Tune: flags.tune}
	switch {
	case flags.nodes == "":
		return o, errors.New("no cluster given: name a file with --nodes")
	case len(flags.pods) == 0:
		return o, errors.New("no workload given: name a file with --pods")
	case !slices.Contains(table.Formats(), flags.output):
		return o, fmt.Errorf("unknown output %q: choose one of %s", flags.output, strings.Join(table.Formats(), ", "))
	}
	if flags.plot != "" {
		if err := chart.Supported(flags.plot); err != nil {
			return o, err
		}
	}
	var err error
	if o.Seeds, err = packing.ParseSeeds(flags.seeds); err != nil {
		return o, err
	}
	return o, o.Check()
}
