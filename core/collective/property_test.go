package collective

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// costFunc is what the properties are about, so that broken variants can be put in its place:
// the time of a world's gang, alone or among others, and at its ideal place.
type costFunc func(w *world, alone bool) (at, ideal Cost)

func modelled(w *world, alone bool) (at, ideal Cost) {
	m := w.model()
	var load *Load
	if !alone {
		load = m.NewLoad()
		load.Add(w.others, 1)
	}
	g := m.Gang(w.seats)
	return g.AllReduce(w.bytes, load), g.Ideal(w.bytes)
}

// rounding is what sums in another order may differ by, and chances that are not looked at.
const rounding = 1e-6

func faster(a, b float64) bool { return a < b*(1-rounding) }

// A property draws a world and tells what is wrong with it, "" if nothing.
type property func(t *rapid.T, cost costFunc) string

func properties() map[string]property {
	return map[string]property{
		"no placement beats the ideal": func(t *rapid.T, cost costFunc) string {
			w := drawWorld(t)
			if rapid.Bool().Draw(t, "regular") {
				w = drawRegular(t)
			}
			at, ideal := cost(w, rapid.Bool().Draw(t, "alone"))
			if faster(at.Ring, ideal.Ring) || faster(at.Tree, ideal.Tree) || faster(at.Best(), ideal.Best()) {
				return fmt.Sprintf("%v is faster than the ideal %v: %+v", at, ideal, w)
			}
			return ""
		},
		"the ideal place is ideal": func(t *rapid.T, cost costFunc) string {
			w := drawIdeal(t)
			at, ideal := cost(w, true)
			if w.fabric.Routing == Hashed && leaves(w) > 1 {
				// The bound of the trees may be out of reach.
				return unless(!faster(at.Ring, ideal.Ring) && !faster(ideal.Ring, at.Ring), ideal, at, w)
			}
			return unless(at.Best() == ideal.Best(), ideal, at, w)
		},
		"two leaves are no faster than one": func(t *rapid.T, cost costFunc) string {
			w := drawInLeaf(t)
			moved := w.with(func(w *world) {
				// The last nodes of the order go to the second leaf, on the same places there.
				for i := integer(t, 0, len(w.seats)-1, "stay"); i < len(w.seats); i++ {
					w.seats[i].Node += w.snapshot.Len() / 2
				}
			})
			before, _ := cost(w, true)
			after, _ := cost(moved, true)
			return unless(!faster(after.Ring, before.Ring) && !faster(after.Tree, before.Tree), before, after, w)
		},
		"more bandwidth is no slower": func(t *rapid.T, cost costFunc) string {
			w := drawWorld(t)
			more := w.with(func(w *world) { widen(t, w) })
			alone := rapid.Bool().Draw(t, "alone")
			before, _ := cost(w, alone)
			after, _ := cost(more, alone)
			return unless(!faster(before.Ring, after.Ring) && !faster(before.Tree, after.Tree), before, after, w)
		},
		"sharing is no faster": func(t *rapid.T, cost costFunc) string {
			w := drawWorld(t)
			alone, _ := cost(w, true)
			shared, _ := cost(w, false)
			return unless(!faster(shared.Ring, alone.Ring) && !faster(shared.Tree, alone.Tree), alone, shared, w)
		},
		"hashing is no faster": func(t *rapid.T, cost costFunc) string {
			w := drawWorld(t)
			alone := rapid.Bool().Draw(t, "alone")
			even, _ := cost(w.with(func(w *world) { w.fabric.Routing = Adaptive }), alone)
			hashed, _ := cost(w.with(func(w *world) { w.fabric.Routing = Hashed }), alone)
			return unless(!faster(hashed.Ring, even.Ring) && !faster(hashed.Tree, even.Tree), even, hashed, w)
		},
		"nodes of a leaf may swap": func(t *rapid.T, cost costFunc) string {
			w := drawWorld(t)
			alone := rapid.Bool().Draw(t, "alone")
			before, _ := cost(w, alone)
			after, _ := cost(w.with(func(w *world) { permute(t, w) }), alone)
			return unless(before == after, before, after, w)
		},
	}
}

func unless(holds bool, before, after Cost, w *world) string {
	if holds {
		return ""
	}
	return fmt.Sprintf("%v became %v: %+v", before, after, w)
}

// drawIdeal draws a regular fat tree and seats a gang where it is best off: evenly on the fewest
// nodes, in rank order leaf by leaf. Where a leaf does not hold it, nothing is oversubscribed.
func drawIdeal(t *rapid.T) *world {
	f := drawFabric(t)
	perLeaf, perSpine := integer(t, 1, 16, "nodes a leaf"), integer(t, 1, 8, "leaves a spine")
	nodes := perLeaf * perSpine * integer(t, 1, 3, "spines")
	ranks := integer(t, 1, f.GPUs*nodes, "ranks")
	fewest := (ranks + f.GPUs - 1) / f.GPUs
	if fewest > perLeaf {
		f.Oversubscription = nil
	}
	w := &world{fabric: f, snapshot: network(fatTree(nodes, perLeaf, perSpine)...), bytes: number(t, 0, 1e10, "bytes")}
	for i := range fewest {
		w.seats = append(w.seats, Seat{Node: i, GPUs: (ranks + i) / fewest})
	}
	return w
}

// drawRegular draws a regular fat tree and seats a gang anywhere.
func drawRegular(t *rapid.T) *world {
	perLeaf, perSpine := integer(t, 1, 8, "nodes a leaf"), integer(t, 1, 6, "leaves a spine")
	nodes := perLeaf * perSpine * integer(t, 1, 3, "spines")
	w := &world{fabric: drawFabric(t), snapshot: network(fatTree(nodes, perLeaf, perSpine)...), bytes: number(t, 0, 1e10, "bytes")}
	w.seats = drawSeats(t, w.fabric.GPUs, nodes)
	return w
}

// drawInLeaf draws two leaves of as many nodes and a gang in the first.
func drawInLeaf(t *rapid.T) *world {
	n := integer(t, 1, 16, "nodes a leaf")
	w := &world{fabric: drawFabric(t), snapshot: network(fatTree(2*n, n, integer(t, 1, 2, "leaves a spine"))...), bytes: number(t, 0, 1e10, "bytes")}
	w.seats = drawSeats(t, w.fabric.GPUs, n)
	return w
}

func widen(t *rapid.T, w *world) {
	factor := number(t, 1, 10, "factor")
	switch integer(t, 0, 3, "what") {
	case 0:
		w.fabric.NVLink *= factor
	case 1:
		w.fabric.NIC *= factor
	case 2:
		for i := range w.fabric.Oversubscription {
			w.fabric.Oversubscription[i] /= factor
		}
	default:
		for i := range w.uplinks {
			w.uplinks[i].Mbps *= int64(factor)
		}
	}
}

// permute deals the seats on nodes of one leaf anew among the places that they have in rank order.
func permute(t *rapid.T, w *world) {
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "permutation"), 2))
	for d := range w.snapshot.Domains(1) {
		var at []int
		for i, s := range w.seats {
			if w.snapshot.DomainOf(1, s.Node) == d {
				at = append(at, i)
			}
		}
		before := slices.Clone(w.seats)
		for i, k := range r.Perm(len(at)) {
			w.seats[at[i]] = before[at[k]]
		}
	}
}

func TestProperties(t *testing.T) {
	for name, holds := range properties() {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				if wrong := holds(t, modelled); wrong != "" {
					t.Fatal(wrong)
				}
			})
		})
	}
}

// What gangs put on the network and take off again leaves nothing behind, whatever their weights.
func TestLoadIsTakenOffWithoutATrace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		m := w.model()
		load := m.NewLoad()
		load.Add(w.others, 1)
		weights := rapid.SliceOfN(rapid.Float64Range(0, 1), 1, 20).Draw(t, "weights")
		g := m.Gang(w.seats)
		for _, c := range weights {
			load.Add(g.Crossings(Ring), c)
		}
		for _, c := range weights {
			load.Remove(g.Crossings(Ring), c)
		}
		for _, c := range w.others {
			if got := load.Flows(c.Level, c.Domain); got != c.Flows {
				t.Fatalf("%v flows are left of %v", got, c)
			}
		}
	})
}
