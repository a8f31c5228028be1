package main

import (
	"fmt"
	"math/rand/v2"
)

// unit is what somebody submits at once: a pod, or a gang of equal pods.
type unit struct {
	name string
	pods int
	// gpus are those of each pod.
	gpus int
	// required and preferred are topology levels, "" for none.
	required, preferred string
}

func (u unit) gang() bool { return u.pods > 1 }

// podsOf counts the pods of units.
func podsOf(units []unit) int {
	n := 0
	for _, u := range units {
		n += u.pods
	}
	return n
}

// mixedUnits fill two thirds of the GPUs of so many nodes: plain pods of 1, 2, 4 and 8 GPUs, as
// many of each, and gangs of 8 pods with 8 GPUs, which would like to be in one leaf. Even if
// every plain pod takes a node for itself, every gang has room. Their order is drawn; equal seeds
// draw the same.
func mixedUnits(nodes int, seed uint64) []unit {
	var units []unit
	for i := range nodes * 128 / 1024 {
		for _, gpus := range []int{1, 2, 4, 8} {
			units = append(units, unit{name: fmt.Sprintf("pod-%d-%04d", gpus, i), pods: 1, gpus: gpus})
		}
	}
	for i := range nodes * 56 / 1024 {
		units = append(units, unit{name: fmt.Sprintf("gang-%04d", i), pods: 8, gpus: 8, preferred: "leaf"})
	}
	draw := rand.New(rand.NewPCG(seed, 0))
	draw.Shuffle(len(units), func(i, j int) { units[i], units[j] = units[j], units[i] })
	return units
}

const (
	nodesPerLeaf = 16
	gpusPerNode  = 8
)

// leafUnits are pods that take whole nodes, of as many leaves as 25 of 32 are (800 of 1,024
// nodes), and then a gang for each leaf that is left, of all its nodes.
func leafUnits(nodes int) (fill, gangs []unit) {
	leaves := nodes / nodesPerLeaf
	full := leaves * 25 / 32
	for i := range full * nodesPerLeaf {
		fill = append(fill, unit{name: fmt.Sprintf("whole-%04d", i), pods: 1, gpus: gpusPerNode})
	}
	for i := range leaves - full {
		gangs = append(gangs, unit{name: fmt.Sprintf("leaf-gang-%02d", i), pods: nodesPerLeaf, gpus: gpusPerNode, required: "leaf"})
	}
	return fill, gangs
}
