package collective

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// until draws until it has found what it looks for, and gives up after 300 rounds of rapid's
// number of cases: a rare mistake is missed now and then by a fixed number of draws.
func until(t *testing.T, found *bool, property func(*rapid.T)) {
	t.Helper()
	for round := 0; round < 300 && !*found; round++ {
		rapid.Check(t, func(t *rapid.T) {
			if !*found {
				property(t)
			}
		})
	}
}

// world is a drawn network with a gang on it, and what others have there.
type world struct {
	fabric   Fabric
	snapshot *cluster.Snapshot
	uplinks  []cluster.Uplink
	seats    []Seat
	others   []Crossing
	bytes    float64
}

func number(t *rapid.T, low, high float64, what string) float64 {
	return rapid.Float64Range(low, high).Draw(t, what)
}

func integer(t *rapid.T, low, high int, what string) int {
	return rapid.IntRange(low, high).Draw(t, what)
}

func drawFabric(t *rapid.T) Fabric {
	f := Fabric{
		GPUs: integer(t, 1, 8, "GPUs"), NVLink: number(t, 1e9, 1e12, "NVLink"), NIC: number(t, 1e9, 1e12, "NIC"),
		Shared:        rapid.Bool().Draw(t, "shared"),
		Routing:       rapid.SampledFrom([]Routing{Adaptive, Hashed}).Draw(t, "routing"),
		NVLinkLatency: number(t, 0, 1e-5, "NVLink latency"), HopLatency: number(t, 0, 1e-5, "hop latency"),
	}
	f.NICLatency = f.NVLinkLatency + number(t, 0, 1e-5, "NIC latency")
	for range integer(t, 0, 2, "levels") {
		f.Oversubscription = append(f.Oversubscription, number(t, .5, 64, "oversubscription"))
	}
	return f
}

// drawWorld draws an irregular network: nodes without a leaf or a spine, leaves of any size, some
// uplinks that are told.
func drawWorld(t *rapid.T) *world {
	w := &world{fabric: drawFabric(t), bytes: number(t, 0, 1e10, "bytes")}
	places := make([]place, integer(t, 1, 24, "nodes"))
	for i := range places {
		places[i].leaf = rapid.SampledFrom([]string{"l1", "l2", "l3", ""}).Draw(t, "leaf")
		places[i].spine = rapid.SampledFrom([]string{"s1", "s2", ""}).Draw(t, "spine")
	}
	w.snapshot = network(places...)
	for _, d := range w.snapshot.Domains(1) {
		if rapid.Bool().Draw(t, "told") {
			w.uplinks = append(w.uplinks, cluster.Uplink{
				Level: 1, Path: w.snapshot.At(d.First).Path[:2], Mbps: int64(integer(t, 1000, 10_000_000, "uplink")),
			})
		}
	}
	w.seats = drawSeats(t, w.fabric.GPUs, w.snapshot.Len())
	for level := range 2 {
		for d := range w.snapshot.Domains(level) {
			w.others = append(w.others, Crossing{Level: level, Domain: d, Flows: float64(integer(t, 0, 40, "others"))})
		}
	}
	for n := range w.snapshot.Len() {
		w.others = append(w.others, Crossing{Level: NIC, Domain: n, Flows: float64(integer(t, 0, 3, "others"))})
	}
	return w
}

func drawSeats(t *rapid.T, gpus, nodes int) []Seat {
	order := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "order"), 1)).Perm(nodes)
	seats := make([]Seat, integer(t, 1, nodes, "seats"))
	for i := range seats {
		seats[i] = Seat{Node: order[i], GPUs: gpus - integer(t, 0, gpus-1, "fewer")}
	}
	return seats
}

// model is the model of the world, and gang its gang.
func (w *world) model() *Model {
	m, err := New(w.fabric, w.snapshot, w.uplinks)
	if err != nil {
		panic(fmt.Sprintf("a drawn world is wrong: %v", err))
	}
	return m
}

func (w *world) ranks() int {
	n := 0
	for _, s := range w.seats {
		n += s.GPUs
	}
	return n
}

// with returns a copy of the world that edit may change.
func (w *world) with(edit func(*world)) *world {
	next := *w
	next.seats = slices.Clone(w.seats)
	next.fabric.Oversubscription = slices.Clone(w.fabric.Oversubscription)
	next.uplinks = slices.Clone(w.uplinks)
	edit(&next)
	return &next
}
