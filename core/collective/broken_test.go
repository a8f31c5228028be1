package collective

import (
	"testing"

	"pgregory.net/rapid"
)

// seeing is a model that sees another world than there is.
func seeing(edit func(*world)) costFunc {
	return func(w *world, alone bool) (at, ideal Cost) { return modelled(w.with(edit), alone) }
}

// saying is a model that changes what it found for a gang at its place.
func saying(edit func(w *world, alone bool, at *Cost)) costFunc {
	return func(w *world, alone bool) (Cost, Cost) {
		at, ideal := modelled(w, alone)
		edit(w, alone, &at)
		return at, ideal
	}
}

func scale(c *Cost, by float64) { c.Ring, c.Tree = c.Ring*by, c.Tree*by }

// leaves counts the leaves that a gang has nodes in.
func leaves(w *world) int {
	seen := map[int]bool{}
	for _, s := range w.seats {
		seen[w.snapshot.DomainOf(1, s.Node)] = true
	}
	return len(seen)
}

// brokenModels are mistakes by the property that finds them.
func brokenModels() map[string]map[string]costFunc {
	return map[string]map[string]costFunc{
		"no placement beats the ideal": {
			"takes more nodes than the fewest for ideal": func(w *world, alone bool) (Cost, Cost) {
				at, _ := modelled(w, alone)
				return at, w.model().ideal(w.ranks(), max(1, w.fabric.GPUs/2), w.bytes)
			},
			"forgets the NICs": saying(func(w *world, _ bool, at *Cost) {
				*at = w.with(func(w *world) { w.fabric.NIC *= 1000 }).model().Gang(w.seats).AllReduce(w.bytes, nil)
			}),
			"takes the average of the rails": saying(func(w *world, _ bool, at *Cost) {
				even := w.with(func(w *world) {
					for i := range w.seats {
						w.seats[i].GPUs = w.fabric.GPUs
					}
				})
				*at = even.model().Gang(even.seats).AllReduce(w.bytes, nil)
			}),
		},
		"the ideal place is ideal": {
			"adds a hop to whatever leaves a node": saying(func(w *world, _ bool, at *Cost) {
				if len(w.seats) > 1 {
					at.Ring += w.fabric.HopLatency
					at.Tree += w.fabric.HopLatency
				}
			}),
			"counts one rank more": saying(func(w *world, alone bool, at *Cost) {
				*at, _ = modelled(w.with(func(w *world) { w.seats[0].GPUs++ }), alone)
			}),
			"holds one node less a leaf": func(w *world, alone bool) (Cost, Cost) {
				m := w.model()
				for i := range m.levels {
					for k := range m.levels[i].holds {
						m.levels[i].holds[k] -= k + 1
					}
				}
				return m.Gang(w.seats).AllReduce(w.bytes, nil), m.Ideal(w.ranks(), w.bytes)
			},
		},
		"two leaves are no faster than one": {
			"divides by leaves": saying(func(w *world, _ bool, at *Cost) { scale(at, 1/float64(leaves(w))) }),
			"takes a hop off for a leaf": saying(func(w *world, _ bool, at *Cost) {
				at.Ring -= 4 * w.fabric.HopLatency * float64(leaves(w)-1)
			}),
		},
		"more bandwidth is no slower": {
			"takes NVLink for seconds a byte": seeing(func(w *world) { w.fabric.NVLink = 1e20 / w.fabric.NVLink }),
			"takes a NIC for seconds a byte":  seeing(func(w *world) { w.fabric.NIC = 1e20 / w.fabric.NIC }),
			"divides by oversubscription twice over": seeing(func(w *world) {
				for i, o := range w.fabric.Oversubscription {
					w.fabric.Oversubscription[i] = 1 / o
				}
			}),
			"takes uplinks for seconds a byte": seeing(func(w *world) {
				for i := range w.uplinks {
					w.uplinks[i].Mbps = 1e9 / w.uplinks[i].Mbps
				}
			}),
			"chooses the algorithm by NICs": func(w *world, alone bool) (Cost, Cost) {
				at, ideal := modelled(w, alone)
				if w.fabric.NIC > 1e11 {
					at.Ring = at.Tree
				}
				return at, ideal
			},
		},
		"sharing is no faster": {
			"takes others away from the own": seeing(func(w *world) {
				others := make([]Crossing, len(w.others))
				for i, c := range w.others {
					c.Flows *= -.01
					others[i] = c
				}
				w.others = others
			}),
			"adds the others' uplinks to the own": saying(func(w *world, alone bool, at *Cost) {
				if !alone {
					scale(at, .9)
				}
			}),
		},
		"hashing is no faster": {
			"counts a link too many": func(w *world, alone bool) (Cost, Cost) {
				m := w.model()
				if w.fabric.Routing == Hashed {
					for i := range m.levels {
						for d := range m.levels[i].uplinks {
							m.levels[i].uplinks[d] += w.fabric.NIC
						}
					}
				}
				var others *Load
				if !alone {
					others = m.NewLoad()
					others.Add(w.others, 1)
				}
				return m.Gang(w.seats).AllReduce(w.bytes, others), m.Ideal(w.ranks(), w.bytes)
			},
			"meets others on no link": seeing(func(w *world) {
				if w.fabric.Routing == Hashed {
					w.others = nil
				}
			}),
		},
		"nodes of a leaf may swap": {
			"takes the first node's rails": saying(func(w *world, _ bool, at *Cost) { scale(at, 1/float64(w.seats[0].GPUs)) }),
			"charges by position":          saying(func(w *world, _ bool, at *Cost) { at.Ring += float64(w.seats[0].Node) * 1e-6 }),
		},
	}
}

// The properties must be able to fail: each of these mistakes is found.
func TestPropertiesFindMistakes(t *testing.T) {
	all := properties()
	for name, models := range brokenModels() {
		for mistake, broken := range models {
			t.Run(name+"/"+mistake, func(t *testing.T) {
				found := false
				until(t, &found, func(t *rapid.T) { found = all[name](t, broken) != "" })
				if !found {
					t.Error("the property holds for a broken model")
				}
			})
		}
	}
	if len(brokenModels()) != len(all) {
		t.Errorf("%d of %d properties have mistakes to find", len(brokenModels()), len(all))
	}
}
