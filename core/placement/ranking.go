package placement

import (
	"math"
	"reflect"
	"slices"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// ranking orders the nodes of a view by a strategy's score. It is a tournament: a tree whose
// leaves are the nodes and in which every inner place holds the better of the two below, so
// that a change of one node is settled in log n matches.
type ranking struct {
	strategy Strategy
	scoring  *Scoring
	scores   []float64
	// winner is the tree: the children of i are 2i and 2i+1, the leaves start at size; -1 is
	// nobody.
	winner []int32
	size   int
	c      Candidate
}

// maxRankings bounds what is remembered of one shape; the oldest goes first.
const maxRankings = 8

// sameStrategy tells whether two strategies are the same value, and not only of the same name.
// One that cannot be compared is never the same, and never remembered.
func sameStrategy(a, b Strategy) bool {
	t := reflect.TypeOf(a)
	return t == reflect.TypeOf(b) && t.Comparable() && a == b
}

// ranking returns the view's nodes ordered by the strategy, up to date.
func (v *view) ranking(strategy Strategy, scoring *Scoring) *ranking {
	for _, r := range v.rankings {
		if r.scoring == scoring && sameStrategy(r.strategy, strategy) {
			return r
		}
	}
	if len(v.rankings) == maxRankings {
		v.rankings = slices.Delete(v.rankings, 0, 1)
	}
	r := &ranking{strategy: strategy, scoring: scoring, size: 1}
	n := len(v.fits)
	for r.size < n {
		r.size *= 2
	}
	r.scores = make([]float64, n)
	r.winner = slices.Repeat([]int32{-1}, 2*r.size)
	for i := range v.fits {
		r.enter(v, i)
	}
	for k := r.size - 1; k > 0; k-- {
		r.winner[k] = r.better(r.winner[2*k], r.winner[2*k+1])
	}
	v.rankings = append(v.rankings, r)
	return r
}

func (r *ranking) enter(v *view, i int) {
	r.winner[r.size+i] = -1
	r.scores[i] = math.Inf(-1)
	if v.fits[i] > 0 {
		r.winner[r.size+i] = int32(i)
		r.c = Candidate{Node: v.at.At(i), Pod: &v.need.Shape, Scoring: r.scoring}
		v.opine(&r.c, i)
		r.scores[i] = scoreNode(r.strategy, &v.need, &r.c)
	}
}

func (r *ranking) update(v *view, i int) {
	r.enter(v, i)
	for k := (r.size + i) / 2; k > 0; k /= 2 {
		w := r.better(r.winner[2*k], r.winner[2*k+1])
		if w == r.winner[k] && int(w) != i {
			return // The node did not win here before and does not now.
		}
		r.winner[k] = w
	}
}

// better returns the node with the higher score, among equals the first.
func (r *ranking) better(a, b int32) int32 {
	if b < 0 || a >= 0 && r.scores[a] >= r.scores[b] {
		return a
	}
	return b
}

// best returns the position of the best node that fits, -1 if none does.
func (r *ranking) best() int { return int(r.winner[1]) }

// likeScale puts preferred node affinity above every strategy's score, which stays far below
// it, and leaves the score enough digits to tell nodes apart that are liked equally.
const likeScale = 1 << 20

// scoreNode fills in what the candidate's node has left and asks the strategy.
func scoreNode(strategy Strategy, q *need, c *Candidate) float64 {
	c.FreeGPUs = c.Node.Free(q.GPUResource) - int64(c.Placed)*q.GPUs
	c.Whole = 0
	if c.Node.Board != nil {
		c.Whole = c.Node.WholeGPUs()
		for range c.Placed {
			if q.whole {
				set, _ := c.Node.Board.Best(c.Whole, int(q.GPUs), 0)
				c.Whole &^= set
			}
		}
	}
	if c.OpinionWeight > 0 {
		return judgedScore(strategy, q, c)
	}
	return strategy.Score(c) + float64(q.affinity(c.Node.Machine))*likeScale
}

// opinionSteps is how finely opinions are told apart where they come before a strategy's score:
// in tenths of a point, so that what is left of 53 bits still tells scores apart.
const opinionSteps = 10

// judgedScore is scoreNode for a request whose Rules have scores: a Weigher has weighed them in,
// before all other strategies they come as they are; preferred node affinity is the workload's
// own wish, and comes before both.
func judgedScore(strategy Strategy, q *need, c *Candidate) float64 {
	opinion := 0.0
	if w, ok := strategy.(Weigher); !ok || !w.WeighsOpinions() {
		opinion = math.Round(c.Opinion * opinionSteps)
	}
	liked := float64(q.affinity(c.Node.Machine)) * (100*opinionSteps + 1)
	return strategy.Score(c) + (liked+opinion)*likeScale
}

// affinity returns the weights of the preferred terms that match the node.
func (q *need) affinity(n *cluster.Machine) int {
	sum := 0
	for i := range q.Likes {
		if l := &q.Likes[i]; l.Term.Matches(n) {
			sum += l.Weight
		}
	}
	return sum
}
