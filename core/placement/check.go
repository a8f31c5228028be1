package placement

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// maxCount bounds a group, so that no sum over one overflows.
const maxCount = maxPods

// check returns what is malformed about the request.
func check(s *cluster.Snapshot, r *Request) error {
	if len(r.Groups) == 0 {
		return errors.New("no groups")
	}
	for i := range r.Groups {
		if err := r.Groups[i].check(s); err != nil {
			if r.Groups[i].Name == "" {
				return err
			}
			return fmt.Errorf("group %s: %w", r.Groups[i].Name, err)
		}
	}
	for i := range r.Sets {
		if err := checkSet(s, r, i); err != nil {
			return fmt.Errorf("set %d: %w", i, err)
		}
	}
	return nil
}

func (g *Group) check(s *cluster.Snapshot) error {
	switch {
	case g.Count < 1:
		return fmt.Errorf("%d pods asked for, at least 1 is needed", g.Count)
	case g.Count > maxCount:
		return fmt.Errorf("%d pods asked for, at most %d can be", g.Count, maxCount)
	case g.MinCount < 0 || g.MinCount > g.Count:
		return fmt.Errorf("at least %d pods asked for, it must be between 0 and the %d wanted", g.MinCount, g.Count)
	case len(g.Limits) > 0 && slices.Min(slices.Collect(maps.Values(g.Limits))) < 0:
		return errors.New("a negative limit of pods for a node")
	case g.Mbps < 0 || g.Mbps > 1<<40:
		return fmt.Errorf("a bandwidth of %d Mbit/s asked for, it must be between 0 and 2^40", g.Mbps)
	}
	if err := checkTopology(s, g.Topology); err != nil {
		return err
	}
	if err := g.Pod.check(); err != nil {
		return err
	}
	return g.checkSlices(s)
}

func (g *Group) checkSlices(s *cluster.Snapshot) error {
	for i, sl := range g.Slices {
		switch {
		case sl.Level < 0 || sl.Level >= len(s.Levels):
			return fmt.Errorf("slices at level %d asked for, the snapshot has %d", sl.Level, len(s.Levels))
		case sl.Size < 1:
			return fmt.Errorf("slices of %d pods asked for, at least 1 is needed", sl.Size)
		case sl.Level < g.Topology.Required:
			return fmt.Errorf("slices in one %s asked for, which is wider than the %s required of the whole group",
				s.Levels[sl.Level].Name, s.Levels[g.Topology.Required].Name)
		case i > 0 && sl.Level <= g.Slices[i-1].Level:
			return fmt.Errorf("slices in one %s inside slices in one %s: the inner level must be the narrower one",
				s.Levels[sl.Level].Name, s.Levels[g.Slices[i-1].Level].Name)
		case i > 0 && g.Slices[i-1].Size%sl.Size != 0:
			return fmt.Errorf("slices of %d inside slices of %d: the inner size must divide the outer one", sl.Size, g.Slices[i-1].Size)
		}
	}
	return nil
}

func checkTopology(s *cluster.Snapshot, t Topology) error {
	for _, level := range []int{t.Required, t.Preferred} {
		if level < AnyLevel || level >= len(s.Levels) {
			return fmt.Errorf("level %d asked for, the snapshot has %d", level, len(s.Levels))
		}
	}
	return nil
}

// check refuses amounts that no arithmetic is safe with.
func (q *Shape) check() error {
	for i, want := range q.Resources {
		if want < 0 || want > 1<<60 {
			return fmt.Errorf("%d of resource %d asked for, it must be between 0 and 2^60", want, i)
		}
	}
	switch {
	case q.GPUs < 0 || q.GPUs > 1<<30:
		return fmt.Errorf("%d GPUs asked for", q.GPUs)
	case q.Milli < 0 || q.Milli > cluster.Full:
		return fmt.Errorf("%d/1000 of a GPU asked for, it must be between 0 and %d", q.Milli, cluster.Full)
	case len(q.MIG) > 64:
		return fmt.Errorf("%d MIG instances asked for, at most 64 can be", len(q.MIG))
	case len(q.MIG) > 0 && (q.GPUs > 0 || q.Milli > 0):
		return errors.New("MIG instances and GPUs asked for by one pod, it can have either")
	}
	return nil
}

// checkSet makes sure that sets are inside one another or apart, so that they form a tree.
func checkSet(s *cluster.Snapshot, r *Request, i int) error {
	set := r.Sets[i]
	if err := checkTopology(s, set.Topology); err != nil {
		return err
	}
	if len(set.Groups) == 0 {
		return errors.New("no groups")
	}
	for k, g := range set.Groups {
		if g < 0 || g >= len(r.Groups) {
			return fmt.Errorf("group %d named, there are %d", g, len(r.Groups))
		}
		if slices.Index(set.Groups, g) != k {
			return fmt.Errorf("group %d named twice", g)
		}
	}
	for k := range i {
		common := 0
		for _, g := range set.Groups {
			if slices.Contains(r.Sets[k].Groups, g) {
				common++
			}
		}
		if common > 0 && common < min(len(set.Groups), len(r.Sets[k].Groups)) {
			return fmt.Errorf("it overlaps set %d and neither holds the other", k)
		}
	}
	return nil
}
