package packing

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"
)

// The most that is played at once, and how far a list is shortened and lengthened.
const (
	maxSeeds = 1000
	minTune  = 0.01
	maxTune  = 10
)

// Options is what is played beside a cluster and workloads.
type Options struct {
	// Policies are names of Policies, or those that stand for several; none means DefaultPolicies.
	Policies []string
	Seeds    []int64
	// Tune is what the pods ask for in the end, as a multiple of the GPUs.
	Tune float64
	// Published, if there is one, is what the results are held against.
	Published *Reference
	// Done, if there is one, is called after every run, by several at a time.
	Done func()
}

// Experiment is what is to be played: every policy on every workload with every seed.
type Experiment struct {
	cluster   *Cluster
	workloads []*Workload
	policies  []policy
	options   Options
}

// Check says what is wrong with the options.
func (o *Options) Check() error {
	if _, err := choose(o.Policies); err != nil {
		return err
	}
	switch {
	case len(o.Seeds) == 0:
		return errors.New("no seed given")
	case !(o.Tune >= minTune && o.Tune <= maxTune):
		return fmt.Errorf("tune is %v: expected a multiple of the GPUs, %v to %d", o.Tune, minTune, maxTune)
	}
	return nil
}

// NewExperiment checks what is to be played. Workloads must have different names.
func NewExperiment(c *Cluster, workloads []*Workload, o Options) (*Experiment, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	if len(o.Policies) == 0 {
		o.Policies = DefaultPolicies()
	}
	chosen, err := choose(o.Policies)
	if err != nil {
		return nil, err
	}
	if len(workloads) == 0 {
		return nil, errors.New("no workload given")
	}
	e := &Experiment{cluster: c, workloads: workloads, policies: chosen, options: o}
	if o.Published != nil {
		if err := o.Published.covers(e); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// end is the last column, judged the one by which policies are judged: where the pods have asked
// for all GPUs.
func (e *Experiment) end() int    { return int(math.Round(100 * e.options.Tune)) }
func (e *Experiment) judged() int { return min(100, e.end()) }

// Runs returns how many runs there are.
func (e *Experiment) Runs() int { return len(e.workloads) * len(e.policies) * len(e.options.Seeds) }

// Play plays all runs, as many at a time as there are processors. What comes out does not depend
// on which of them end first.
func (e *Experiment) Play(ctx context.Context) (*Results, error) {
	r := &Results{
		Nodes:     len(e.cluster.nodes),
		GPUs:      e.cluster.gpus,
		Tune:      e.options.Tune,
		Seeds:     e.options.Seeds,
		Judged:    e.judged(),
		End:       e.end(),
		Workloads: []WorkloadSize{},
		Runs:      make([]*Run, e.Runs()),
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	at := 0
	for _, w := range e.workloads {
		r.Workloads = append(r.Workloads, WorkloadSize{Name: w.Name, Pods: len(w.pods), Kinds: len(w.kinds), Hopeless: hopeless(w, e.cluster)})
		t := newTypical(w)
		for _, p := range e.policies {
			for _, seed := range e.options.Seeds {
				slot := &r.Runs[at]
				at++
				m := &match{cluster: e.cluster, workload: w, typical: t, policy: p, seed: seed, tune: e.options.Tune}
				g.Go(func() (err error) {
					if err = ctx.Err(); err != nil {
						return err
					}
					defer func() {
						if broken := recover(); broken != nil {
							err = fmt.Errorf("internal error: playing %s on %s with seed %d: %v", p.name, w.Name, seed, broken)
						}
					}()
					if *slot, err = m.play(); err == nil && e.options.Done != nil {
						e.options.Done()
					}
					return err
				})
			}
		}
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	r.summarise()
	if e.options.Published != nil {
		r.Published = e.options.Published.compare(r)
	}
	return r, nil
}

// ParseSeeds reads seeds such as "42-51" or "1,7,20-29": whole numbers from 0 on, each once.
func ParseSeeds(text string) ([]int64, error) {
	var seeds []int64
	seen := map[int64]bool{}
	for _, part := range strings.Split(text, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			last = first
		}
		from, err := strconv.ParseInt(first, 10, 63)
		to, err2 := strconv.ParseInt(last, 10, 63)
		switch {
		case err != nil || err2 != nil || from < 0:
			return nil, fmt.Errorf("seeds are %q: expected whole numbers and ranges of them, such as 42-51 or 1,7,20-29", text)
		case to < from:
			return nil, fmt.Errorf("seeds are %q: the range %s ends before it begins", text, part)
		case to-from >= maxSeeds || len(seeds)+int(to-from) >= maxSeeds:
			return nil, fmt.Errorf("seeds are %q: more than %d", text, maxSeeds)
		}
		for seed := from; seed <= to; seed++ {
			if seen[seed] {
				return nil, fmt.Errorf("seeds are %q: %d is there twice", text, seed)
			}
			seen[seed] = true
			seeds = append(seeds, seed)
		}
	}
	return seeds, nil
}
