package packing

import (
	"fmt"
)

// Run is what became of a cluster: one workload, one policy, one seed.
type Run struct {
	Workload string `json:"workload"`
	Policy   string `json:"policy"`
	Seed     int64  `json:"seed"`
	// Pods is how many pods arrived, Refused how many found no room.
	Pods    int      `json:"pods"`
	Refused int      `json:"refused"`
	Columns []Column `json:"columns"`
}

// match is one run to be played.
type match struct {
	cluster  *Cluster
	workload *Workload
	typical  typical
	policy   policy
	seed     int64
	tune     float64
	// placed, if there is one, is told of every pod that finds room, with its place among those
	// that arrive.
	placed func(at int, k *kind, s spot)
}

// play lets the pods arrive.
func (m *match) play() (*Run, error) {
	o, err := newOrder(m.workload, m.cluster, m.seed, m.tune)
	if err != nil {
		return nil, err
	}
	run := &Run{Workload: m.workload.Name, Policy: m.policy.name, Seed: m.seed, Pods: len(o.pods)}
	now := newWorld(m.cluster, o)
	placer, err := m.policy.placer(m.cluster, m.workload, o, now, m.typical)
	if err != nil {
		return nil, fmt.Errorf("playing %s on %s: %w", run.Policy, run.Workload, err)
	}
	// What each node has that typical pods cannot use, and the sum.
	fragments, fragmentation := make([]float64, len(now.nodes)), 0.0
	for i := range now.nodes {
		fragments[i] = m.typical.fragmentation(&now.nodes[i])
		fragmentation += fragments[i]
	}
	curve := newCurve(m.cluster.capacity(), m.tune, fragmentation)
	full := make([]bool, len(m.workload.kinds))
	var arrived, used int64
	for at, id := range o.pods {
		k := &m.workload.kinds[id]
		arrived += k.demand()
		// Pods never leave, so that what found no room once will find none.
		ok := !full[id]
		var s spot
		if ok {
			if s, ok, err = placer.place(k); err != nil {
				return nil, fmt.Errorf("playing %s on %s: %w", run.Policy, run.Workload, err)
			}
		}
		if ok {
			if err := now.take(k, s); err != nil {
				return nil, fmt.Errorf("%s oversold a node while playing %s: %w", run.Policy, run.Workload, err)
			}
			used += k.demand()
			f := m.typical.fragmentation(&now.nodes[s.node])
			fragmentation += f - fragments[s.node]
			fragments[s.node] = f
			if m.placed != nil {
				m.placed(at, k, s)
			}
		} else {
			full[id] = true
			run.Refused++
		}
		curve.note(arrived, used, max(0, fragmentation))
	}
	run.Columns = curve.columns()
	return run, nil
}
