package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// patience is how long no pod may be bound before the rest is taken not to be.
const patience = 20 * time.Second

func mixedFigures() []figure {
	return []figure{
		{"pods/s", "%.1f"}, {"pods unbound", "%.0f"}, {"gangs whole", "%.0f"}, {"gangs in one leaf %", "%.1f"}, {"leaves a gang", "%.2f"},
		{"fragmentation %", "%.1f"}, {"idle GPUs on whole nodes", "%.0f"},
		{"create s", "%.1f"}, {"API requests/pod", "%.1f"}, {"cpu ms/pod", "%.1f"}, {"cpu ms/pod etcd", "%.1f"}, {"cpu ms/pod kube-apiserver", "%.1f"},
		{"cpu ms/pod kube-controller-manager", "%.1f"}, {"cpu ms/pod kube-scheduler", "%.1f"}, {"cpu ms/pod scheduler", "%.1f"}, {"cpu ms/pod kwok", "%.1f"}, {"cpu ms/pod manager", "%.1f"},
	}
}

// runMixed has every side place the same pods and gangs on an empty cluster, taking turns.
func runMixed(ctx context.Context, o *options, sides []side, r *report) error {
	for pair := range o.pairs {
		units := mixedUnits(o.nodes, uint64(pair))
		for _, s := range inTurn(sides, pair) {
			one := result{Scenario: "mixed", Side: s.name, Pair: pair, Load: load()}
			err := withSandbox(ctx, o, s, func(ctx context.Context, c *sandbox) error {
				var err error
				one.Figures, err = c.place(ctx, s, units)
				return err
			})
			if err != nil {
				return err
			}
			r.add(one, mixedFigures())
		}
	}
	r.table("mixed", sides, mixedFigures())
	return nil
}

// inTurn has a different side go first in every pair.
func inTurn(sides []side, pair int) []side {
	first := pair % len(sides)
	return append(append([]side{}, sides[first:]...), sides[:first]...)
}

// withSandbox gives a fresh cluster of the side to do, and ends it.
func withSandbox(ctx context.Context, o *options, s side, do func(ctx context.Context, c *sandbox) error) error {
	started := time.Now()
	c, err := startSandbox(ctx, o, s.args...)
	if err != nil {
		return err
	}
	c.readyAfter = time.Since(started)
	ctx, cancel := context.WithCancel(ctx)
	err = do(ctx, c)
	cancel()
	logs := ""
	if o.keep != "" {
		logs = o.keep + "/" + s.name
	}
	if err := errors.Join(err, c.stop(logs)); err != nil {
		return fmt.Errorf("side %s: %w", s.name, err)
	}
	return nil
}

// place submits the units to an empty cluster, waits until no more are bound, and measures.
func (c *sandbox) place(ctx context.Context, s side, units []unit) (map[string]float64, error) {
	b, err := c.watchBound(ctx)
	if err != nil {
		return nil, err
	}
	before, err := c.usage(ctx)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	if err := c.submit(ctx, s, units); err != nil {
		return nil, err
	}
	created := time.Since(start)
	n, last, err := b.wait(ctx, podsOf(units), patience)
	if err != nil {
		return nil, err
	}
	after, err := c.usage(ctx)
	if err != nil {
		return nil, err
	}
	v, err := c.judge(ctx, units)
	if err != nil {
		return nil, err
	}
	figures := map[string]float64{
		"pods/s": float64(n) / last.Sub(start).Seconds(), "pods unbound": float64(podsOf(units) - n),
		"gangs whole": float64(v.gangs), "gangs torn": float64(v.torn), "leaves a gang": v.leaves,
		"fragmentation %": 100 * v.fragmentation, "idle GPUs": float64(v.idle), "idle GPUs on whole nodes": float64(v.wholeNodes),
		"create s": created.Seconds(), "start s": c.readyAfter.Seconds(), "place s": last.Sub(start).Seconds(),
	}
	after.since(before, float64(n), "pod", figures)
	if v.gangs > 0 {
		figures["gangs in one leaf %"] = 100 * float64(v.local) / float64(v.gangs)
	}
	return figures, nil
}
