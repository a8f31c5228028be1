package placement

import (
	"errors"
	"fmt"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// Standing is how a node stands with one pod of a request.
type Standing struct {
	// Reason is why the node cannot take the pod now; Fits if it can.
	Reason Reason
	// Score is what the request's strategy gives the node, the sum of the weights of preferred
	// node affinity before it; the highest wins. It is 0 unless the pod fits.
	Score float64
}

// Standings tells how every node of the snapshot, by position, stands with one pod of the request's
// only group, each node by itself: what its domain has left for the rest of the gang is Plan's to
// say. It is for callers that offer several nodes to somebody else who takes one.
//
// It returns an error for a request that is malformed, as Plan does, or has several groups.
func Standings(s *cluster.Snapshot, r *Request, o Options) ([]Standing, error) {
	p, err := newPlanner(s, r, o)
	if err != nil {
		return nil, fmt.Errorf("judging nodes for %s: %w", r.Name, err)
	}
	if len(r.Groups) != 1 {
		return nil, fmt.Errorf("judging nodes for %s: %w", r.Name, errSeveralGroups)
	}
	g := p.gang(s, &r.Groups[0])
	var scores []float64
	if !p.seeded {
		scores = g.view.ranking(p.strategy, p.scoring).scores
	}
	levels := g.insisted()
	standings := make([]Standing, s.Len())
	for i, reason := range g.view.reasons {
		if reason == Fits {
			reason = g.keptFrom(i, levels)
		}
		standings[i].Reason = reason
		switch {
		case reason != Fits:
		case scores != nil:
			standings[i].Score = scores[i]
		default:
			standings[i].Score = g.score(i, 0)
		}
	}
	for _, name := range r.Avoid {
		if i := s.IndexOf(name); i >= 0 && standings[i].Reason == Fits {
			standings[i] = Standing{Reason: Avoided}
		}
	}
	return standings, nil
}

var errSeveralGroups = errors.New("only requests of one group can be asked about node by node")

// Taken tells whether it is the pods on the node that keep others away: without them there would
// be room.
func (r Reason) Taken() bool { return r == GPUsTaken || r == MIGTaken || r == OthersTaken }

// Words says the reason of several nodes: "have too few free GPUs".
func (r Reason) Words(shape *Shape) string { return r.say(2, shape) }
