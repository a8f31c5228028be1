package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// limits are the waits that are stated, and so not held against anybody.
type limits struct {
	// torn is how long a gang may be bound in part before it was ever whole.
	torn time.Duration
	// bystander is how long a pod that is none of ours may wait for its node.
	bystander time.Duration
	// bystanders is the namespace that such pods are in.
	bystanders string
	// lost is how long a workload may stand still at the end without an explanation.
	lost time.Duration
}

// violation is something wrong.
type violation struct {
	Oracle   string `json:"oracle"`
	Revision uint64 `json:"revision,omitempty"`
	What     string `json:"what"`
}

// world is everything that is, at one revision.
type world struct {
	at     change
	byKind map[string]map[string]*object
	// members are the pods of each workload, by the UIDs of both.
	members map[string]map[string]*object
}

func (w *world) all(kind string) map[string]*object { return w.byKind[kind] }

// trial replays a history.
type trial struct {
	limits     limits
	changes    []change
	journal    []record
	quiet      []interval
	violations []violation
	judged     int
}

// interval is a time in which nothing should have been written.
type interval struct{ from, to time.Time }

// oracle knows one thing that must not be. see is called after each change, end once.
type oracle interface {
	see(w *world, before *object)
	end(w *world)
}

// blame notes a violation at the revision that is being looked at.
type blame func(oracle, format string, args ...any)

// run judges the whole history.
func (t *trial) run() []violation {
	slices.SortStableFunc(t.changes, func(a, b change) int { return cmp.Compare(a.version, b.version) })
	w := &world{byKind: map[string]map[string]*object{pods: {}, nodes: {}, jobs: {}, workloads: {}, notes: {}}, members: make(map[string]map[string]*object)}
	blame := func(oracle, format string, args ...any) {
		t.violations = append(t.violations, violation{Oracle: oracle, Revision: w.at.version, What: fmt.Sprintf(format, args...)})
	}
	oracles := []oracle{
		newOversold(blame), newTorn(blame, t.limits.torn), newDoubled(blame), newLost(blame, t.limits.lost),
		newAccounts(blame), newSummary(blame), newStrangers(blame, t.journal), newBystanders(blame, t.limits),
		newQuiet(blame, t.quiet, t.journal),
	}
	for _, c := range t.changes {
		w.at = c
		before := w.byKind[c.kind][c.Metadata.UID]
		if c.deleted {
			delete(w.byKind[c.kind], c.Metadata.UID)
		} else {
			w.byKind[c.kind][c.Metadata.UID] = c.object
		}
		if c.kind == pods && c.deleted {
			delete(inner(w.members, c.workload()), c.Metadata.UID)
		} else if c.kind == pods && c.workload() != "" {
			inner(w.members, c.workload())[c.Metadata.UID] = c.object
		}
		for _, o := range oracles {
			o.see(w, before)
		}
		t.judged++
	}
	for _, o := range oracles {
		o.end(w)
	}
	return t.violations
}
