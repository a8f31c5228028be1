package main

import (
	"context"
	"fmt"
	"time"
)

func leavesFigures() []figure {
	return []figure{
		{"gangs placed", "%.0f"}, {"of", "%.0f"}, {"gangs torn", "%.0f"}, {"whole leaves before", "%.0f"}, {"fill pods/s", "%.1f"}, {"gang pods/s", "%.1f"},
	}
}

// runLeaves fills most of the cluster with pods that take whole nodes, and then asks for gangs
// that need a whole leaf each: as many as a packer leaves that keeps leaves whole.
func runLeaves(ctx context.Context, o *options, sides []side, r *report) error {
	fill, gangs := leafUnits(o.nodes)
	for _, s := range sides {
		one := result{Scenario: "leaves", Side: s.name, Load: load()}
		err := withSandbox(ctx, o, s, func(ctx context.Context, c *sandbox) error {
			var err error
			one.Figures, err = c.fillAndAsk(ctx, s, fill, gangs)
			return err
		})
		if err != nil {
			return err
		}
		r.add(one, leavesFigures())
	}
	r.table("leaves", sides, leavesFigures())
	return nil
}

func (c *sandbox) fillAndAsk(ctx context.Context, s side, fill, gangs []unit) (map[string]float64, error) {
	b, err := c.watchBound(ctx)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	if err := c.submit(ctx, s, fill); err != nil {
		return nil, err
	}
	n, last, err := b.wait(ctx, podsOf(fill), patience)
	if err != nil {
		return nil, err
	}
	if n < podsOf(fill) {
		return nil, fmt.Errorf("%d of %d pods that take whole nodes were bound to an empty cluster", n, podsOf(fill))
	}
	before, err := c.judge(ctx, fill)
	if err != nil {
		return nil, err
	}
	figures := map[string]float64{
		"fill pods/s": float64(n) / last.Sub(start).Seconds(), "whole leaves before": float64(before.wholeLeaves), "of": float64(len(gangs)),
	}
	start = time.Now()
	if err := c.submit(ctx, s, gangs); err != nil {
		return nil, err
	}
	all, last, err := b.wait(ctx, podsOf(fill)+podsOf(gangs), patience)
	if err != nil {
		return nil, err
	}
	after, err := c.judge(ctx, gangs)
	if err != nil {
		return nil, err
	}
	if after.local != after.gangs {
		return nil, fmt.Errorf("%d of %d gangs are in one leaf, which every one requires", after.local, after.gangs)
	}
	figures["gangs placed"], figures["gangs torn"] = float64(after.gangs), float64(after.torn)
	if all > n {
		figures["gang pods/s"] = float64(all-n) / last.Sub(start).Seconds()
	}
	return figures, nil
}
