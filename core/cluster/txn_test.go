package cluster

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/reyisjones/gpu-orchestrator/core/gpu"
)

// drawnNode is a node with a Board and MIG, empty.
func drawnNode(t *rapid.T, name string, board *gpu.Board) *Node {
	n := node(name, map[string]string{"s": rapid.SampledFrom([]string{"s1", "s2", ""}).Draw(t, "spine")})
	n.Board = board
	n.Allocatable = Vector{8, 64, 6, 4}
	if rapid.IntRange(0, 4).Draw(t, "broken") == 4 {
		n.Broken = gpu.MaskOf(1)
	}
	return n
}

func drawnWorld(t *rapid.T, board *gpu.Board) *Snapshot {
	nodes := make([]*Node, rapid.IntRange(1, 130).Draw(t, "nodes"))
	for i := range nodes {
		nodes[i] = drawnNode(t, fmt.Sprintf("n%03d", i), board)
	}
	return NewSnapshot(1, levels(), NewResources("gpu"), nodes)
}

func newBoard(t testing.TB) *gpu.Board {
	t.Helper()
	b, err := gpu.NewBoard(gpu.Wiring{Count: 4})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// drawPod draws a pod with whole GPUs, a share of one, a MIG instance, or none of them.
func drawPod(t *rapid.T) *Pod {
	p := &Pod{Name: "p", Use: Vector{int64(rapid.IntRange(0, 5).Draw(t, "cpu")), 1, 1}}
	i := rapid.IntRange(0, 3).Draw(t, "gpu")
	switch rapid.IntRange(0, 3).Draw(t, "kind") {
	case 1:
		p.GPUs = gpu.MaskOf(i, rapid.IntRange(0, 3).Draw(t, "another"))
		p.Use = append(p.Use, int64(p.GPUs.Count()))
	case 2:
		p.GPUs, p.Milli = gpu.MaskOf(i), rapid.SampledFrom([]int{300, 500, 1000}).Draw(t, "milli")
	case 3:
		p.Instances = []gpu.Instance{{GPU: i, Profile: "1g.10gb", Start: rapid.IntRange(0, 6).Draw(t, "start"), Size: 1}}
	}
	return p
}

// copyOf is all that can be read of a snapshot, in storage of its own.
func copyOf(s *Snapshot) []Node {
	var nodes []Node
	for _, n := range s.Nodes() {
		own := *n
		own.Used, own.Shares = slices.Clone(n.Used), slices.Clone(n.Shares)
		own.Instances, own.Pods = slices.Clone(n.Instances), slices.Clone(n.Pods)
		nodes = append(nodes, own)
	}
	return nodes
}

// overfull returns what a node holds beyond what it has, pod by pod, "" if nothing.
func overfull(s *Snapshot) string {
	for _, n := range s.Nodes() {
		var used [4]int64
		milli, slices := [4]int{}, [4][8]bool{}
		for _, p := range n.Pods {
			for r, amount := range p.Use {
				used[r] += amount
			}
			for _, in := range p.Instances {
				for k := in.Start; k < in.Start+in.Size; k++ {
					if slices[in.GPU][k] || n.Broken>>in.GPU&1 == 1 {
						return fmt.Sprintf("%s: slice %d of GPU %d is held twice", n.Name, k, in.GPU)
					}
					slices[in.GPU][k] = true
				}
			}
			for i := range 4 {
				switch {
				case p.GPUs>>i&1 == 0:
				case n.Broken>>i&1 == 1:
					return fmt.Sprintf("%s: broken GPU %d is held", n.Name, i)
				case p.Milli > 0 && p.Milli < 1000:
					milli[i] += p.Milli
				default:
					milli[i] += 1000
				}
			}
		}
		for r, amount := range used {
			if amount > n.Allocatable[r] {
				return fmt.Sprintf("%s: %d of resource %d, it has %d", n.Name, amount, r, n.Allocatable[r])
			}
		}
		for i, amount := range milli {
			if amount > 1000 || amount > 0 && slices[i] != [8]bool{} {
				return fmt.Sprintf("%s: %d/1000 of GPU %d", n.Name, amount, i)
			}
		}
	}
	return ""
}

// placeFunc is Txn.Place, so that broken variants can be put in its place.
type placeFunc func(*Txn, ...Placement) error

// moves makes drawn moves and returns what goes wrong.
func moves(t *rapid.T, first *Snapshot, place placeFunc) string {
	txn := first.Begin()
	seen := map[*Snapshot][]Node{first: copyOf(first)}
	var placed []Placement
	marks := map[int]*Snapshot{}
	for range rapid.IntRange(1, 20).Draw(t, "moves") {
		before := txn.Snapshot()
		switch rapid.IntRange(0, 5).Draw(t, "move") {
		case 0, 1, 2:
			var batch []Placement
			for range rapid.IntRange(1, 4).Draw(t, "batch") {
				at := rapid.IntRange(0, min(2, first.Len()-1)).Draw(t, "at")
				batch = append(batch, Placement{Node: at, Pod: drawPod(t)})
			}
			err := place(txn, batch...)
			switch {
			case err != nil && txn.Snapshot() != before:
				return "a refusal changed the world"
			case err == nil && txn.Snapshot().Generation <= before.Generation:
				return "the generation did not grow"
			case err == nil:
				placed = append(placed, batch...)
			}
		case 3:
			if n := len(placed); n > 0 {
				txn.Evict(placed[n-1])
				placed = placed[:n-1]
			}
		case 4:
			marks[txn.Checkpoint()] = before
		case 5:
			if n := len(marks); n > 0 {
				mark := rapid.IntRange(0, n-1).Draw(t, "mark")
				txn.Rollback(mark)
				if txn.Snapshot() != marks[mark] {
					return "rolled back to another state"
				}
				for m := range marks {
					if m > mark {
						delete(marks, m)
					}
				}
				placed = slices.DeleteFunc(placed, func(p Placement) bool {
					return !slices.Contains(txn.Snapshot().At(p.Node).Pods, p.Pod)
				})
			}
		}
		if problem := overfull(txn.Snapshot()); problem != "" {
			return problem
		}
		if _, ok := seen[txn.Snapshot()]; !ok {
			seen[txn.Snapshot()] = copyOf(txn.Snapshot())
		}
		for s, was := range seen {
			if !reflect.DeepEqual(copyOf(s), was) {
				return "a snapshot that was given out changed"
			}
		}
	}
	return ""
}

func TestTxnIsSoundAndTakesBack(t *testing.T) {
	board := newBoard(t)
	rapid.Check(t, func(t *rapid.T) {
		if problem := moves(t, drawnWorld(t, board), (*Txn).Place); problem != "" {
			t.Fatal(problem)
		}
	})
}

func TestBrokenTxnsAreFound(t *testing.T) {
	board := newBoard(t)
	for name, broken := range map[string]placeFunc{
		"asks nothing": func(t *Txn, p ...Placement) error {
			for i, pods := range t.group(p) {
				t.now = t.now.Next(t.now.Generation+1, t.now.Resources, []*Node{t.now.At(i).With(pods...)})
			}
			return nil
		},
		"places one by one": func(t *Txn, p ...Placement) error {
			for i := range p {
				if err := t.Place(p[i]); err != nil {
					return err
				}
			}
			return nil
		},
		"writes to the nodes": func(t *Txn, p ...Placement) error {
			if err := t.Place(p...); err != nil {
				return err
			}
			n := t.now.At(p[0].Node)
			if len(n.Pods) > 1 {
				n.Pods[0].Use[CPU]++
				n.Used[CPU]++
			}
			return nil
		},
		"keeps the generation": func(t *Txn, p ...Placement) error {
			was := t.now.Generation
			if err := t.Place(p...); err != nil {
				return err
			}
			t.now.Generation = was
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			found := false
			rapid.Check(t, func(t *rapid.T) {
				found = found || moves(t, drawnWorld(t, board), broken) != ""
			})
			if !found {
				t.Error("the property holds for it")
			}
		})
	}
}

// What is placed and evicted again leaves no trace, but for MIG instances: those that were made
// stay, unused, and those that gave way stay away.
func TestEvictTakesBackPlace(t *testing.T) {
	board := newBoard(t)
	rapid.Check(t, func(t *rapid.T) {
		s := drawnWorld(t, board)
		txn := s.Begin()
		batch := []Placement{{0, drawPod(t)}, {s.Len() - 1, drawPod(t)}}
		if txn.Place(batch...) != nil {
			return
		}
		txn.Evict(batch...)
		for i, n := range txn.Snapshot().Nodes() {
			was := s.At(i)
			if !slices.Equal(n.Used.Sub(was.Used), make(Vector, len(n.Used))) || n.Taken != was.Taken || len(n.Pods) != len(was.Pods) {
				t.Fatalf("%+v became %+v", *was, *n)
			}
			if n.WholeGPUs() != was.WholeGPUs() || n.PartitionGPUs() != was.PartitionGPUs() {
				t.Fatalf("free GPUs %v became %v", was.WholeGPUs(), n.WholeGPUs())
			}
			for g := range 4 {
				if n.FreeShare(g) != was.FreeShare(g) {
					t.Fatalf("share of GPU %d was %d, is %d", g, was.FreeShare(g), n.FreeShare(g))
				}
			}
		}
	})
}
