package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/reyisjones/gpu-orchestrator/internal/sim/chart"
	"github.com/reyisjones/gpu-orchestrator/internal/sim/replay"
	"github.com/reyisjones/gpu-orchestrator/internal/sim/table"
)

// jobsFlags are the flags of warp sim jobs.
type jobsFlags struct {
	jobs, output, starts, seeds   string
	clusters, policies, plots     []string
	strategy, estimates, topology string
	queue, allReduce              string
	addNodes, moves               int
	share                         float64
	maxWait, checkpoint, moveCost time.Duration
	preempt, sorted               bool
}

func newSimJobs(p Process) *cobra.Command {
	var flags jobsFlags
	cmd := &cobra.Command{
		Use:   "jobs --jobs FILE --cluster SHAPE|FILE…",
		Short: "Replay a trace of jobs, and say how long they wait and how near their gangs are",
		Long: `jobs replays a trace: every job arrives when it did and runs for as long as it
did, on the cluster and by the policies that you name. Placement, backfilling,
preemption and moves are the engine that runs in clusters. docs/simulator.md
describes the policies, the measures and the model of communication.

A policy is QUEUE or QUEUE/STRATEGY. Queues are
  fifo      in the order of arrival, nobody passes
  greedy    in the order of arrival, whatever fits
  sjf       the shortest expected first, whatever fits
  backfill  whoever does not delay the reservations of those before may pass
  hrrn      the highest response ratio first, whatever fits; who has waited for
            --max-wait gets a reservation that nobody passes
Strategies are those of the product, and leastAllocated and mostAllocated: the
scores of the stock kube-scheduler, which knows nothing of the network.

A cluster is fattree:NODESxGPUS/NODES-A-LEAF/LEAVES-A-SPINE@MODEL, with
,oversubscription=N and ,routing=hashed where that is so; flat:NODESxGPUS; a
list of nodes that ends in .csv, or the output of ibnetdiscover.

The exit code is 0 if everything was replayed, 1 if warp itself failed, and 2 if
a file or a flag is wrong; nothing was replayed then.`,
		Example: `  # What if we switched policy?
  warp sim jobs --jobs jobs.csv --cluster nodes.csv --policy hrrn,fifo/leastAllocated

  # What if we bought 16 more nodes?
  warp sim jobs --jobs jobs.csv --cluster nodes.csv --add-nodes 16

  # On a network that does not exist, with a picture
  warp sim jobs --jobs jobs.csv --cluster fattree:128x8/16/32@H100,oversubscription=2 --plot jobs.html

  # Two clusters side by side, for a program
  warp sim jobs --jobs jobs.csv --cluster fattree:64x8 --cluster fattree:80x8 -o csv`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("%q is not for this command: use --jobs FILE and --cluster SHAPE or FILE", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return runSimJobs(cmd, p, &flags) },
	}
	f := cmd.Flags()
	f.StringVar(&flags.jobs, "jobs", "", "jobs, - for standard input: job_id, submission_time, duration, num_gpu; also the Philly and Kalos traces as published")
	f.StringArrayVar(&flags.clusters, "cluster", nil, "shape or file of a cluster; may be given several times")
	f.IntVar(&flags.addNodes, "add-nodes", 0, "replay also on the cluster with so many more of its commonest nodes")
	f.StringSliceVar(&flags.policies, "policy", replay.DefaultPolicies(), "policies to compare, each QUEUE or QUEUE/STRATEGY")
	f.StringVar(&flags.strategy, "strategy", "topologyAware", "strategy of policies that name none")
	f.StringVar(&flags.estimates, "estimates", string(replay.History), "what policies are told of run times: oracle, p50 of the jobs of the same size that have ended, none")
	f.StringVar(&flags.topology, "topology", string(replay.PreferLeaf), "whether gangs ask for one leaf: preferred, required, none; the stock strategies never do")
	f.StringVar(&flags.queue, "queue", "", "only the jobs of this queue of the trace")
	f.StringVar(&flags.seeds, "seeds", "1-5", "seeds of what policies leave to chance, a replay each: 1-5 or 1,7,20-29")
	f.DurationVar(&flags.maxWait, "max-wait", 0, "for how long others may pass a job; 0 is 1h for backfill, 336h for hrrn")
	f.BoolVar(&flags.preempt, "preempt", false, "let jobs take the place of those of lower priority, which start over")
	f.DurationVar(&flags.checkpoint, "checkpoint", 0, "how often jobs save what they have done; 0 is never")
	f.IntVar(&flags.moves, "moves", 0, "how many running jobs may move to make room for one that waits")
	f.DurationVar(&flags.moveCost, "move-cost", 10*time.Minute, "how much longer a job runs that moves")
	f.BoolVar(&flags.sorted, "sorted-ranks", false, "order the ranks of gangs by the topology for the stock strategies, too, not at random")
	f.StringVar(&flags.allReduce, "all-reduce", "1Gi", "how much gangs reduce at a time, for the model of communication")
	f.Float64Var(&flags.share, "comm-share", 0.3, "part of a gang's time that communication takes at the ideal place, 0 to 1")
	f.StringVarP(&flags.output, "output", "o", string(table.Text), "form of the results: "+strings.Join(table.Formats(), ", "))
	f.StringArrayVar(&flags.plots, "plot", nil, "draw the results into a file that ends in "+strings.Join(chart.Formats(), ", ")+"; may be given several times")
	f.StringVar(&flags.starts, "starts", "", "write when and where each job started into a CSV file")
	for name, values := range map[string][]string{
		"output": table.Formats(), "estimates": replay.EstimateKinds(), "topology": replay.Topologies(),
		"strategy": replay.Strategies(), "policy": replay.Queues(),
	} {
		// The only error is a flag that is not there.
		if err := cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
			panic(err)
		}
	}
	return cmd
}

func runSimJobs(cmd *cobra.Command, p Process, flags *jobsFlags) error {
	policies, options, err := flags.check()
	if err != nil {
		return err
	}
	clusters, err := flags.load()
	if err != nil {
		return err
	}
	jobs, size, err := flags.trace(cmd.InOrStdin())
	if err != nil {
		return err
	}
	for _, name := range append(slices.Clone(flags.plots), flags.starts) {
		if err := checkPicture(name); err != nil {
			return err
		}
	}
	// Every replay reads the trace once.
	bar := newProgress(p, size*replay.Runs(policies, options)*len(clusters), "replaying")
	jobs.Open = counted(jobs.Open, bar)
	var starts startsFile
	if flags.starts != "" {
		options.Started = starts.add
	}
	began := p.Clock()
	report, err := replay.Compare(cmd.Context(), jobs, clusters, policies, options)
	bar.end()
	if err != nil {
		return ours(err)
	}
	flags.say(p, report, p.Clock().Sub(began))
	err = writePicture(flags.starts, starts.write)
	for _, plot := range flags.plots {
		err = errors.Join(err, writePicture(plot, report.Draw))
	}
	if err != nil {
		return fault{fmt.Errorf("writing the results: %w", err)}
	}
	var out bytes.Buffer
	if err = table.Render(&out, table.Format(flags.output), report); err == nil {
		_, err = out.WriteTo(cmd.OutOrStdout())
	}
	if err != nil {
		return fault{fmt.Errorf("writing the results: %w", err)}
	}
	return nil
}

// say tells on standard error how fast that was: what is on standard output is the same for the
// same input.
func (flags *jobsFlags) say(p Process, r *replay.Report, took time.Duration) {
	runs, events := 0, 0
	for _, one := range r.Results {
		runs += one.Runs
		events += one.Events
	}
	fmt.Fprintf(p.Err, "warp: %d replayed with %d events in %.1f s: %.0f events a second on %d processors\n",
		runs, events, took.Seconds(), float64(events)/max(took.Seconds(), 1e-3), runtime.GOMAXPROCS(0))
}

// allReduceBytes reads the amount that is reduced at a time.
func (flags *jobsFlags) allReduceBytes() (float64, error) {
	q, err := resource.ParseQuantity(flags.allReduce)
	if err != nil || q.Sign() <= 0 {
		return 0, fmt.Errorf("--all-reduce %q: expected an amount of memory such as 512Mi or 1Gi", flags.allReduce)
	}
	return q.AsApproximateFloat64(), nil
}

// counted tells the bar of what is read.
func counted(open func() (io.ReadCloser, error), bar progress) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) {
		in, err := open()
		if err != nil {
			return nil, err
		}
		return &counter{in, bar}, nil
	}
}

type counter struct {
	io.ReadCloser
	bar progress
}

// Read implements io.Reader.
func (c *counter) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.bar.add(n)
	return n, err
}

// openFile opens a file for every replay anew.
func openFile(name string) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return os.Open(name) }
}
