package replay

import (
	"context"
	"runtime"
	"strconv"

	"golang.org/x/sync/errgroup"
)

// Report is what is said of one trace: a result for each cluster and policy.
type Report struct {
	Trace     string    `json:"trace"`
	Estimates Estimates `json:"estimates"`
	// Sorted says that the nodes of all gangs are in the order of the topology.
	Sorted bool `json:"sorted,omitempty"`
	// Seeds are those of policies that leave something to chance.
	Seeds    []int64 `json:"seeds"`
	Clusters []Size  `json:"clusters"`
	// Results are in the order of the clusters, and of the policies on each.
	Results []*Result `json:"results"`
}

// Size is how large a cluster is.
type Size struct {
	Name  string   `json:"name"`
	Nodes int      `json:"nodes"`
	GPUs  int64    `json:"gpus"`
	Notes []string `json:"notes,omitempty"`
}

// Compare replays the trace on each cluster by each policy, as many at a time as there are
// processors. The report is the same however many that are. Options.Started is called by one
// replay at a time, those of one cluster and policy together, in the order of the results.
func Compare(ctx context.Context, t Trace, clusters []Cluster, policies []Policy, o Options) (*Report, error) {
	if len(o.Seeds) == 0 {
		o.Seeds = []int64{1}
	}
	r := &Report{Trace: t.Name, Estimates: o.Estimates, Sorted: o.Sorted, Seeds: o.Seeds, Results: make([]*Result, len(clusters)*len(policies))}
	started := make([][]Start, len(r.Results)*len(o.Seeds))
	runs := make([][]*Result, len(r.Results))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, c := range clusters {
		gpus := newShapes(c.Snapshot, AnyPlace).total()
		r.Clusters = append(r.Clusters, Size{Name: c.Name, Nodes: c.Snapshot.Len(), GPUs: gpus, Notes: c.Notes})
		for k, p := range policies {
			at := i*len(policies) + k
			seeds := o.Seeds
			if !p.chance() {
				seeds = seeds[:1]
			}
			runs[at] = make([]*Result, len(seeds))
			for n, seed := range seeds {
				own := o
				own.Seed = seed
				if o.Started != nil {
					own.Started = func(s Start) { started[at*len(o.Seeds)+n] = append(started[at*len(o.Seeds)+n], s) }
				}
				group.Go(func() error {
					if err := ctx.Err(); err != nil {
						return err
					}
					result, err := Run(p, c, t, own)
					runs[at][n] = result
					return err
				})
			}
		}
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for at := range runs {
		r.Results[at] = pool(runs[at], o.Share)
	}
	for _, starts := range started {
		for _, s := range starts {
			o.Started(s)
		}
	}
	return r, nil
}

// Runs returns how many replays Compare makes of the policies on each cluster.
func Runs(policies []Policy, o Options) int {
	n := 0
	for _, p := range policies {
		if n++; p.chance() {
			n += max(0, len(o.Seeds)-1)
		}
	}
	return n
}

// keys are short names of the results, for the heads of columns: their policies, or letters where
// these would be too long.
func (r *Report) keys() []string {
	keys := make([]string, len(r.Results))
	for i, one := range r.Results {
		keys[i] = one.Policy
		if len(r.Clusters) > 1 {
			keys[i] = string(rune('A' + i%26))
			if i >= 26 {
				keys[i] += strconv.Itoa(i / 26)
			}
		}
	}
	return keys
}

// label tells the results of a report apart.
func (r *Report) label(one *Result) string {
	if len(r.Clusters) == 1 {
		return one.Policy
	}
	return one.Policy + " on " + one.Cluster
}
