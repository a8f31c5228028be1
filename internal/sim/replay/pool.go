package replay

import "slices"

// pool takes the runs of one policy with several seeds together: what was counted of jobs and
// gangs is put into one, the rest is the mean.
func pool(runs []*Result, share float64) *Result {
	first := runs[0]
	if len(runs) == 1 {
		return first
	}
	all := *first
	all.Runs, all.Sizes = len(runs), nil
	n := float64(len(runs))
	for _, mean := range []func(*Result) *float64{
		func(r *Result) *float64 { return &r.Hours }, func(r *Result) *float64 { return &r.GPUUse },
		func(r *Result) *float64 { return &r.GPUUseWaiting }, func(r *Result) *float64 { return &r.WaitingTime },
		func(r *Result) *float64 { return &r.Fragmentation },
	} {
		sum := 0.0
		for _, r := range runs {
			sum += *mean(r)
		}
		*mean(&all) = sum / n
	}
	for _, r := range runs[1:] {
		all.Events += r.Events
		all.Preemptions += r.Preemptions
		all.Moves += r.Moves
	}
	all.All = together(runs, share, func(r *Result) *Class { return &r.All })
	for i := range first.Sizes {
		all.Sizes = append(all.Sizes, together(runs, share, func(r *Result) *Class { return &r.Sizes[i] }))
	}
	all.Spread = spread(runs)
	return &all
}

// together puts one range of sizes of all runs into one.
func together(runs []*Result, share float64, of func(*Result) *Class) Class {
	sum := &class{most: of(runs[0]).raw.most}
	for _, r := range runs {
		c := of(r).raw
		sum.waits = append(sum.waits, c.waits...)
		sum.completions = append(sum.completions, c.completions...)
		sum.alone = append(sum.alone, c.alone...)
		sum.loaded = append(sum.loaded, c.loaded...)
		sum.gangs += c.gangs
		sum.oneLeaf += c.oneLeaf
		sum.oneSpine += c.oneSpine
	}
	// What no cluster has, no run has.
	sum.oneLeaf, sum.oneSpine = max(-1, sum.oneLeaf), max(-1, sum.oneSpine)
	all := sum.result(share)
	all.Jobs = of(runs[0]).Jobs
	return all
}

func spread(runs []*Result) *Spread {
	over := func(of func(*Result) float64) Range {
		values := make([]float64, len(runs))
		for i, r := range runs {
			values[i] = of(r)
		}
		return Range{Least: slices.Min(values), Greatest: slices.Max(values)}
	}
	return &Spread{
		WaitingP95: over(func(r *Result) float64 { return r.All.Waiting.P95 }),
		OneLeaf:    over(func(r *Result) float64 { return percent(float64(r.All.OneLeaf), float64(r.All.Gangs)) }),
	}
}
