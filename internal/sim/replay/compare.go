package replay

import (
	"context"
	"runtime"

	"golang.org/x/sync/errgroup"
)

// Report is what is said of one trace: a result for each cluster and policy.
type Report struct {
	Trace     string    `json:"trace"`
	Estimates Estimates `json:"estimates"`
	Seed      uint64    `json:"seed"`
	Clusters  []Size    `json:"clusters"`
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
	r := &Report{Trace: t.Name, Estimates: o.Estimates, Seed: o.Seed, Results: make([]*Result, len(clusters)*len(policies))}
	started := make([][]Start, len(r.Results))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, c := range clusters {
		gpus := newShapes(c.Snapshot, AnyPlace).total()
		r.Clusters = append(r.Clusters, Size{Name: c.Name, Nodes: c.Snapshot.Len(), GPUs: gpus, Notes: c.Notes})
		for k, p := range policies {
			at := i*len(policies) + k
			own := o
			if o.Started != nil {
				own.Started = func(s Start) { started[at] = append(started[at], s) }
			}
			group.Go(func() error {
				if err := ctx.Err(); err != nil {
					return err
				}
				result, err := Run(p, c, t, own)
				r.Results[at] = result
				return err
			})
		}
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for _, starts := range started {
		for _, s := range starts {
			o.Started(s)
		}
	}
	return r, nil
}

// label tells the results of a report apart.
func (r *Report) label(one *Result) string {
	if len(r.Clusters) == 1 {
		return one.Policy
	}
	return one.Policy + " on " + one.Cluster
}
