package placement

import (
	"fmt"
	"maps"
	"slices"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// shuffles tries every sequence of moves: of any workload that may, to any nodes that take its
// pods. It has no code in common with the engine, and knows of GPUs only.
type shuffles struct {
	s     *cluster.Snapshot
	r     *Request
	work  []*cluster.Workload
	pods  [][]*cluster.Pod
	at    [][]int
	free  []int64
	moved []bool
	left  map[string]int // of each budget
	seen  map[string]bool
	steps int
}

const shuffleSteps = 60000 / slowdown

func newShuffles(s *cluster.Snapshot, r *Request, o MoveOptions) *shuffles {
	b := &shuffles{s: s, r: r, seen: map[string]bool{}, left: map[string]int{}}
	maps.Copy(b.left, o.Budgets)
	for i, n := range s.Nodes() {
		b.free = append(b.free, n.Allocatable[gpuResource])
		for _, p := range n.Pods {
			b.free[i] -= p.Use[gpuResource]
			if !p.Workload.Movable || p.Workload.Protected || slices.Contains(o.Moved, p.Workload.Name) {
				continue
			}
			k := slices.Index(b.work, p.Workload)
			if k < 0 {
				k = len(b.work)
				b.work, b.pods, b.at, b.moved = append(b.work, p.Workload), append(b.pods, nil), append(b.at, nil), append(b.moved, false)
			}
			b.pods[k], b.at[k] = append(b.pods[k], p), append(b.at[k], i)
		}
	}
	return b
}

// fewest returns the smallest number of moves, up to most, that make room; -1 for none. Known is
// false if the search was too long.
func (b *shuffles) fewest(most int) (n int, known bool) {
	for n = 0; n <= min(most, len(b.work)); n++ {
		clear(b.seen)
		b.steps = 0
		if b.within(n) {
			return n, true
		}
		if b.steps > shuffleSteps {
			return 0, false
		}
	}
	return -1, true
}

// within tells whether so many more moves make room.
func (b *shuffles) within(moves int) bool {
	key := fmt.Sprint(moves, b.at, b.moved)
	if b.seen[key] {
		return false
	}
	b.seen[key] = true
	if b.steps++; b.steps > shuffleSteps {
		return false
	}
	if moves == 0 {
		return b.room()
	}
	for k := range b.work {
		left, limited := b.left[b.work[k].Budget]
		if b.moved[k] || limited && left == 0 {
			continue
		}
		b.moved[k] = true
		if limited {
			b.left[b.work[k].Budget]--
		}
		was := slices.Clone(b.at[k])
		for i, at := range was {
			b.free[at] += b.pods[k][i].Use[gpuResource]
		}
		found := b.put(k, 0, was, moves)
		for i, at := range was {
			b.free[at] -= b.pods[k][i].Use[gpuResource]
		}
		b.at[k], b.moved[k] = was, false
		if limited {
			b.left[b.work[k].Budget]++
		}
		if found {
			return true
		}
	}
	return false
}

// put places the pods of workload k from the i-th on, and goes on with the next move.
func (b *shuffles) put(k, i int, was []int, moves int) bool {
	if i == len(was) {
		var names []string
		for _, at := range b.at[k] {
			names = append(names, b.s.At(at).Name)
		}
		return together(b.s, names, b.work[k].Level) && b.within(moves-1)
	}
	if i == 0 {
		b.at[k] = slices.Clone(was)
	}
	p := b.pods[k][i]
	gpus := p.Use[gpuResource]
	for at := range b.free {
		n := b.s.At(at)
		// A pod may stay where it could not come.
		allowed := at == was[i] || n.Ready && (p.Needs == nil || n.Labels["zone"] == "a")
		if !allowed || b.free[at] < gpus {
			continue
		}
		b.free[at] -= gpus
		b.at[k][i] = at
		found := b.put(k, i+1, was, moves)
		b.free[at] += gpus
		if found {
			return true
		}
	}
	return false
}

// room tells whether the gang fits now.
func (b *shuffles) room() bool {
	fits := map[string]int{}
	for i, n := range b.s.Nodes() {
		domain := "all"
		if l := b.r.Groups[0].Topology.Required; l >= 0 {
			domain = key(n, l)
		}
		if n.Ready && domain != "" {
			fits[domain] += int(b.free[i] / b.r.Groups[0].Pod.GPUs)
		}
	}
	for _, n := range fits {
		if n >= b.r.Groups[0].least() {
			return true
		}
	}
	return false
}
