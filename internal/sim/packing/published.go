package packing

import (
	"github.com/reyisjones/gpu-orchestrator/core/gpu"
)

// placer decides where pods go, one after the other.
type placer interface {
	// place takes room for a pod of the kind; ok is false where there is none.
	place(k *kind) (s spot, ok bool, err error)
}

// rule is a published policy: a whole number for each node that fits, the largest wins.
type rule interface {
	// score says how good the node is, and which of its GPUs a pod with a share of one takes.
	score(n *node, k *kind) (score, share int)
}

// scan asks a rule about every node that fits. Scores of nodes that did not change are kept.
type scan struct {
	rule  rule
	world *world
	known [][]opinion
}

// opinion is what a rule said of a node at some version of it.
type opinion struct {
	version      uint32
	fits         bool
	score, share int32
}

func (s *scan) place(k *kind) (spot, bool, error) {
	if s.known[k.id] == nil {
		s.known[k.id] = make([]opinion, len(s.world.nodes))
	}
	best := -1
	known := s.known[k.id]
	for i := range known {
		o, n := &known[i], &s.world.nodes[i]
		if o.version != n.version {
			o.version, o.fits = n.version, n.fits(k)
			if o.fits {
				score, share := s.rule.score(n, k)
				o.score, o.share = int32(score), int32(share)
			}
		}
		if o.fits && (best < 0 || o.score > known[best].score) {
			best = i
		}
	}
	if best < 0 {
		return spot{}, false, nil
	}
	return spotOn(s.world, best, k, int(known[best].share)), true, nil
}

// spotOn names the GPUs that a pod takes of a node: one for a share, else the first whole ones.
func spotOn(w *world, i int, k *kind, share int) spot {
	if k.shares() {
		return spot{node: i, gpus: gpu.MaskOf(share)}
	}
	return spot{node: i, gpus: w.nodes[i].firstWhole(k.gpus)}
}
