package placement

import (
	"fmt"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// Tidy is Defragment as housekeeping, for nobody in particular: it looks for moves, at most
// MaxMoves of them, with which as much of the gang as can be has room, up to its full size. A
// gang of whole nodes in one leaf, for example, asks for the leaf with the most empty nodes.
//
// The Plan it returns is of the size that it found; without moves that is what has room now, and
// LowerBound is 0. That no larger size can be had is not claimed: sizes that stay undecided are
// passed over. The request has one group, whose MinCount does not count.
func Tidy(s *cluster.Snapshot, r *Request, o MoveOptions) (Moves, error) {
	if len(r.Groups) != 1 || o.MaxMoves < 1 {
		return Moves{}, fmt.Errorf("tidying for %s: %d groups and %d moves asked for, one group and at least one move are needed",
			r.Name, len(r.Groups), o.MaxMoves)
	}
	sized := *r
	sized.Preempts = false
	sized.Groups = []Group{r.Groups[0]}
	g := &sized.Groups[0]
	g.MinCount = 1
	now, err := Plan(s, &sized, o.Options)
	if err != nil {
		return Moves{}, fmt.Errorf("tidying: %w", err)
	}
	for size := g.Count; size > now.Size(); size-- {
		if size%g.step() != 0 && size != r.Groups[0].Count {
			continue
		}
		g.Count, g.MinCount = size, size
		m, err := Defragment(s, &sized, o)
		if err != nil {
			return m, err
		}
		if m.Feasible {
			m.Sentence = fmt.Sprintf("room for %s instead of %d: %s", plural(size, "pod"), now.Size(), m.Sentence)
			return m, nil
		}
	}
	return Moves{Feasible: now.Feasible, Plan: now, Certificate: now.Why.Certificate,
		Sentence: fmt.Sprintf("no moves are known that make room for more than %s: %s", plural(now.Size(), "pod"), now.Why.Sentence)}, nil
}
