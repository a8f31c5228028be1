package collective

import (
	"errors"
	"fmt"
	"math"
)

// Fabric is the numbers of a kind of machine and of the network between such machines. Bandwidths
// are in bytes a second and in one direction, latencies in seconds.
type Fabric struct {
	// GPUs is how many GPUs the largest node has.
	GPUs int
	// NVLink is what a GPU sends to the others of its node, by NVLink or whatever it has.
	NVLink float64
	// NIC is what a NIC sends. A node has one for each GPU, its rail, or, where Shared, one for all
	// of its GPUs, which gangs on the node then share.
	NIC    float64
	Shared bool
	// NVLinkLatency is one step between GPUs of a node, NICLatency one between nodes of a leaf,
	// and HopLatency what each further switch adds: two for each level that is crossed.
	NVLinkLatency, NICLatency, HopLatency float64
	// Oversubscription is how much more the nodes of a domain can send than its uplink carries,
	// by level of switches, innermost (the leaf) first; 1, which is non-blocking, where it is
	// shorter. It holds for uplinks whose capacity nobody told.
	Oversubscription []float64
	// Routing is how flows get to the links of an uplink, of which there are as many as it carries
	// what a NIC sends.
	Routing Routing
}

// Latencies of one step by the ring and protocol LL128 in NCCL's tuning model (hwLat in
// src/graph/tuning.cc), and what a switch of 2018 to 2022 takes from port to port by its data sheet
// (below 150 ns).
const (
	nvlinkStep = 1.9e-6
	nicStep    = 4.0e-6
	switchHop  = 0.15e-6
)

// gigabit is a gigabit a second in bytes a second.
const gigabit = 1e9 / 8

// H100NDR is a DGX H100: 900 GB/s of NVLink a GPU, both directions together, and a ConnectX-7 of
// 400 Gb/s for each of 8 GPUs (NVIDIA DGX H100 data sheet), on a non-blocking network.
func H100NDR() Fabric { return rails(450e9, 400*gigabit) }

// A100HDR is a DGX A100: 600 GB/s of NVLink a GPU, both directions together, and a ConnectX-6 of
// 200 Gb/s for each of 8 GPUs (NVIDIA DGX A100 data sheet), on a non-blocking network.
func A100HDR() Fabric { return rails(300e9, 200*gigabit) }

func rails(nvlink, nic float64) Fabric {
	return Fabric{
		GPUs: 8, NVLink: nvlink, NIC: nic,
		NVLinkLatency: nvlinkStep, NICLatency: nicStep, HopLatency: switchHop,
	}
}

// V100EDR is a machine of the years of the Philly trace: 8 GPUs with 300 GB/s of NVLink each, both
// directions together (NVIDIA V100 data sheet), and one NIC of 100 Gb/s for all of them. That four
// times as much goes into a rack as out of it is an assumption, no published number.
func V100EDR() Fabric {
	f := rails(150e9, 100*gigabit)
	f.Shared = true
	f.Oversubscription = []float64{4}
	return f
}

// node is what the NICs of a node send, in bytes a second.
func (f *Fabric) node() float64 {
	if f.Shared {
		return f.NIC
	}
	return f.NIC * float64(f.GPUs)
}

// oversubscription is that of the level of switches l, innermost first.
func (f *Fabric) oversubscription(l int) float64 {
	if l < len(f.Oversubscription) {
		return f.Oversubscription[l]
	}
	return 1
}

// check tells what cannot be.
func (f *Fabric) check() error {
	var wrong []error
	if f.GPUs < 1 {
		wrong = append(wrong, fmt.Errorf("a node has %d GPUs: it must have one at least", f.GPUs))
	}
	for _, b := range []struct {
		name  string
		value float64
	}{{"NVLink", f.NVLink}, {"NIC", f.NIC}} {
		if !(b.value > 0) || math.IsInf(b.value, 1) {
			wrong = append(wrong, fmt.Errorf("%s sends %g bytes a second: it must be more than 0, and finite", b.name, b.value))
		}
	}
	for _, l := range []float64{f.NVLinkLatency, f.NICLatency, f.HopLatency} {
		if !(l >= 0) || math.IsInf(l, 1) {
			wrong = append(wrong, fmt.Errorf("a latency is %g seconds: it must be 0 or more, and finite", l))
		}
	}
	if f.NVLinkLatency > f.NICLatency {
		wrong = append(wrong, fmt.Errorf("a step inside a node takes %g seconds, one between nodes %g: it cannot be the shorter one", f.NVLinkLatency, f.NICLatency))
	}
	if f.Routing != Adaptive && f.Routing != Hashed {
		wrong = append(wrong, fmt.Errorf("there is no routing %d", int(f.Routing)))
	}
	for l, o := range f.Oversubscription {
		if !(o > 0) || math.IsInf(o, 1) {
			wrong = append(wrong, fmt.Errorf("oversubscription of level %d is %g: it must be more than 0, and finite", l, o))
		}
	}
	return errors.Join(wrong...)
}
