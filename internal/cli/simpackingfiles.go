package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/reyisjones/gpu-orchestrator/internal/problem"
	"github.com/reyisjones/gpu-orchestrator/internal/sim/packing"
	"github.com/reyisjones/gpu-orchestrator/internal/sim/trace"
)

// experiment reads all files: what is wrong with any is said of all, but that pods are judged by
// the nodes, so that these come first.
func (flags *packingFlags) experiment(stdin io.Reader, o packing.Options) (*packing.Experiment, error) {
	files := csvFiles{stdin: stdin}
	var (
		cluster *packing.Cluster
		models  map[string]bool
	)
	files.read(flags.nodes, func(name string, in io.Reader) error {
		nodes, err := trace.ReadNodes(name, in)
		if err != nil {
			return err
		}
		models = trace.Models(nodes)
		cluster, err = packing.NewCluster(name, nodes)
		return err
	})
	if err := files.err(); err != nil {
		return nil, err
	}
	var workloads []*packing.Workload
	by := map[string]string{}
	for _, file := range flags.pods {
		name := packing.WorkloadName(file)
		if first, twice := by[name]; twice {
			return nil, fmt.Errorf("--pods %s and --pods %s are both called %s: give them different names", first, file, name)
		}
		by[name] = file
		files.read(file, func(label string, in io.Reader) error {
			pods, err := trace.ReadPods(label, in, models)
			if err != nil {
				return err
			}
			w, err := packing.NewWorkload(name, label, pods, cluster)
			workloads = append(workloads, w)
			return err
		})
	}
	if flags.published != "" {
		files.read(flags.published, func(name string, in io.Reader) (err error) {
			o.Published, err = packing.ReadReference(name, in)
			return err
		})
	}
	if err := files.err(); err != nil {
		return nil, err
	}
	return packing.NewExperiment(cluster, workloads, o)
}

// csvFiles reads files one after the other and keeps what is wrong with them.
type csvFiles struct {
	stdin    io.Reader
	problems problem.Problems
	fault    error
	piped    bool
}

func (c *csvFiles) read(file string, read func(name string, in io.Reader) error) {
	if file == "-" {
		if c.piped {
			c.problems = append(c.problems, problem.Problem{File: "stdin", Text: "is asked for twice, but can be read once"})
			return
		}
		c.piped = true
	}
	in, err := readInput(c.stdin, file)
	if err != nil {
		c.problems = append(c.problems, problem.Problem{File: in.Name, Text: "cannot be read: " + err.Error()})
		return
	}
	err = read(in.Name, bytes.NewReader(in.Data))
	var found problem.Problems
	switch {
	case errors.As(err, &found):
		c.problems = append(c.problems, found...)
	case err != nil && c.fault == nil:
		c.fault = err
	}
}

func (c *csvFiles) err() error {
	if len(c.problems) > 0 {
		return c.problems
	}
	return c.fault
}
