package cli

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/reyisjones/gpu-orchestrator/core/collective"
	"github.com/reyisjones/gpu-orchestrator/internal/problem"
	"github.com/reyisjones/gpu-orchestrator/internal/sim/chart"
	"github.com/reyisjones/gpu-orchestrator/internal/sim/fabric"
	"github.com/reyisjones/gpu-orchestrator/internal/sim/packing"
	"github.com/reyisjones/gpu-orchestrator/internal/sim/replay"
	"github.com/reyisjones/gpu-orchestrator/internal/sim/table"
)

// check returns what the flags ask for, as far as no file has to be read for it.
func (flags *jobsFlags) check() ([]replay.Policy, replay.Options, error) {
	o := replay.Options{
		Estimates: replay.Estimates(flags.estimates), Topology: replay.Topology(flags.topology),
		MaxWait: flags.maxWait, Preempt: flags.preempt, Checkpoint: flags.checkpoint, Moves: flags.moves,
		MoveCost: flags.moveCost, Queue: flags.queue, Share: flags.share, Sorted: flags.sorted,
	}
	oneOf := func(flag, value string, known []string) error {
		if slices.Contains(known, value) {
			return nil
		}
		return fmt.Errorf("unknown --%s %q: choose one of %s", flag, value, strings.Join(known, ", "))
	}
	err := errors.Join(
		oneOf("output", flags.output, table.Formats()),
		oneOf("estimates", flags.estimates, replay.EstimateKinds()),
		oneOf("topology", flags.topology, replay.Topologies()),
		oneOf("strategy", flags.strategy, replay.Strategies()),
	)
	switch {
	case flags.jobs == "":
		return nil, o, errors.New("no trace given: name a file with --jobs, or - for standard input")
	case len(flags.clusters) == 0:
		return nil, o, errors.New("no cluster given: name a shape such as fattree:128x8, or a file, with --cluster")
	case err != nil:
		return nil, o, err
	case flags.maxWait < 0 || flags.checkpoint < 0 || flags.moveCost < 0 || flags.moves < 0 || flags.addNodes < 0:
		return nil, o, errors.New("--max-wait, --checkpoint, --moves, --move-cost and --add-nodes: expected none of them below 0")
	case !(flags.share >= 0 && flags.share <= 1):
		return nil, o, fmt.Errorf("--comm-share %v: expected 0 to 1", flags.share)
	case flags.checkpoint > 0 && !flags.preempt:
		return nil, o, errors.New("--checkpoint does nothing without --preempt")
	case len(flags.policies) == 0:
		return nil, o, errors.New("no policy given: name some with --policy")
	}
	if o.AllReduce, err = flags.allReduceBytes(); err != nil {
		return nil, o, err
	}
	if o.Seeds, err = packing.ParseSeeds(flags.seeds); err != nil {
		return nil, o, err
	}
	for _, plot := range flags.plots {
		if err := chart.Supported(plot); err != nil {
			return nil, o, err
		}
	}
	policies, err := replay.ParsePolicies(flags.policies, flags.strategy)
	return policies, o, err
}

// load makes the clusters: each as it is, and, where nodes are to be added, with them.
func (flags *jobsFlags) load() ([]replay.Cluster, error) {
	var clusters []replay.Cluster
	for i, source := range flags.clusters {
		for _, before := range flags.clusters[:i] {
			if source == before || !fabric.IsShape(source) && filepath.Base(source) == filepath.Base(before) {
				return nil, fmt.Errorf("--cluster %s and %s would have the same name in the results: expected different ones", before, source)
			}
		}
		more := []int{0}
		if flags.addNodes > 0 {
			more = append(more, flags.addNodes)
		}
		for _, n := range more {
			c, err := loadCluster(source, n)
			if err != nil {
				return nil, err
			}
			clusters = append(clusters, c)
		}
	}
	return clusters, nil
}

func loadCluster(source string, more int) (replay.Cluster, error) {
	c, err := fabric.Load(source, func(file string) (io.ReadCloser, error) { return os.Open(file) })
	if err != nil {
		return replay.Cluster{}, err
	}
	if err := c.Grow(more); err != nil {
		return replay.Cluster{}, err
	}
	name := source
	if !fabric.IsShape(source) {
		name = filepath.Base(source)
	}
	if more > 0 {
		name = fmt.Sprintf("%s +%d", name, more)
	}
	if c.GPUs() == 0 {
		return replay.Cluster{}, problem.Problems{{File: source, Text: "has no node with a GPU; expected some"}}
	}
	s, err := c.Snapshot()
	if err != nil {
		return replay.Cluster{}, fault{err}
	}
	m, err := collective.New(c.Fabric, s, c.Uplinks)
	if err != nil {
		return replay.Cluster{}, fault{err}
	}
	return replay.Cluster{Name: name, Notes: c.Notes, Snapshot: s, Model: m}, nil
}

// trace returns the trace and how many bytes it has; standard input is kept, as every replay
// reads it.
func (flags *jobsFlags) trace(stdin io.Reader) (replay.Trace, int, error) {
	in := replay.Trace{Name: flags.jobs, Open: openFile(flags.jobs)}
	if flags.jobs == "-" {
		data, err := io.ReadAll(stdin)
		if err != nil {
			return in, 0, fault{fmt.Errorf("reading standard input: %w", err)}
		}
		in.Name = "stdin"
		in.Open = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
		return in, len(data), nil
	}
	// Whether it can be read is found out before anything is replayed.
	file, err := os.Open(flags.jobs)
	if err != nil {
		return in, 0, fmt.Errorf("the trace cannot be read: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err == nil && info.IsDir() {
		err = fmt.Errorf("%s is a folder", flags.jobs)
	}
	if err != nil {
		return in, 0, fmt.Errorf("the trace cannot be read: %w", err)
	}
	return in, int(info.Size()), nil
}

// ours marks an error that is not of a file's contents as a fault of warp.
func ours(err error) error {
	var problems problem.Problems
	if errors.As(err, &problems) {
		return err
	}
	return fault{err}
}

// startsFile is when and where jobs started, as CSV.
type startsFile struct{ rows [][]string }

func (f *startsFile) add(s replay.Start) {
	seconds := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	f.rows = append(f.rows, []string{
		s.Cluster, s.Policy, strconv.FormatInt(s.Seed, 10), s.Job.ID, seconds(s.Job.Submit.Seconds()), seconds(s.At.Seconds()), strconv.Itoa(s.Job.GPUs), strings.Join(s.Nodes, " "),
	})
}

func (f *startsFile) write(out io.Writer, _ string) error {
	w := csv.NewWriter(out)
	if err := w.Write([]string{"cluster", "policy", "seed", "job_id", "submission_time", "start_time", "num_gpu", "nodes"}); err != nil {
		return err
	}
	return w.WriteAll(f.rows)
}
