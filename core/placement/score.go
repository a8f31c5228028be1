package placement

import (
	"math"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// neutral is the value of a term that has nothing to say.
const neutral = 50

// nodeTerms returns the terms of a node's score, each 0 to 100 (requirement document 4,
// "Scoring Pipeline"; hint is its "ML Placement Hint"), and last what the request's Rules say.
func nodeTerms(c *Candidate) [5]Term {
	var after stock
	after.read(c)
	after.take()
	w := &c.Scoring.Node
	return [5]Term{
		{Name: "topology", Value: topologyTerm(c), Weight: w.Topology},
		{Name: "resources", Value: resourcesTerm(&after), Weight: w.Resources},
		{Name: "balance", Value: balanceTerm(&after), Weight: w.Balance},
		{Name: "hint", Value: opinion(c.Scoring.Hint, c.Node.Name), Weight: w.Hint},
		{Name: "policy", Value: c.Opinion, Weight: c.OpinionWeight},
	}
}

// resourcesTerm is how little the pod leaves unused of what it touches, 0 to 100: the share in
// use, once it runs, of each resource that it asks for. GPUs make half of the mean, the others
// together the other half, as GPUs are what a node costs. A pod that asks for nothing leaves
// nothing unused that it touches: neutral.
//
// The documents name the term and its weight only; this is best fit as FGD's authors measured
// it (Weng et al., USENIX ATC'23), with GPUs counted more.
func resourcesTerm(after *stock) float64 {
	p := after.c.Pod
	sum, count := 0.0, 0.0
	for i, want := range p.Resources {
		if want <= 0 || i == p.GPUResource || i == cluster.Pods {
			continue
		}
		if share, ok := after.inUse(i); ok {
			sum += share
			count++
		}
	}
	gpus, ok := after.gpusInUse()
	wanted := ok && (p.GPUs > 0 || p.Milli > 0 || len(p.MIG) > 0)
	switch {
	case wanted && count > 0:
		return 50 * (gpus + sum/count)
	case wanted:
		return 100 * gpus
	case count > 0:
		return 100 * sum / count
	}
	return neutral
}

// balanceTerm is how evenly CPU, memory and GPUs of the node are in use once the pod runs, so
// that none of them is left over because another has run out: 100 less the standard deviation
// of the shares in use, in percent. It is 50 to 100, as shares between 0 and 1 deviate by 1/2
// at most, and 100 for a node that has one of the three only.
func balanceTerm(after *stock) float64 {
	var shares [3]float64
	n := 0
	for _, i := range [...]int{cluster.CPU, cluster.Memory} {
		if share, ok := after.inUse(i); ok {
			shares[n] = share
			n++
		}
	}
	if share, ok := after.gpusInUse(); ok {
		shares[n] = share
		n++
	}
	if n == 0 {
		return neutral
	}
	mean := 0.0
	for _, share := range shares[:n] {
		mean += share / float64(n)
	}
	variance := 0.0
	for _, share := range shares[:n] {
		variance += (share - mean) * (share - mean) / float64(n)
	}
	return within(100*(1-math.Sqrt(variance)), 0, 100)
}

// opinion returns what is noted under the key, 0 to 100; neutral if nothing is.
func opinion(notes map[string]float64, key string) float64 {
	value, ok := notes[key]
	if !ok || math.IsNaN(value) {
		return neutral
	}
	return within(value, 0, 100)
}

// mean returns the weighted mean of terms, 0 to 100. Weights that are not positive numbers
// count as none; without any weight the mean is neutral.
func mean(terms []Term) float64 {
	largest := 0.0
	for i := range terms {
		largest = max(largest, weight(&terms[i]))
	}
	if largest == 0 {
		return neutral
	}
	// Divided by the largest first: the sum of two huge weights would be infinite.
	sum, total := 0.0, 0.0
	for i := range terms {
		w := weight(&terms[i]) / largest
		sum += w * terms[i].Value
		total += w
	}
	return within(sum/total, 0, 100)
}

// weight returns a term's weight, 0 if it is not a positive number.
func weight(t *Term) float64 {
	if !(t.Weight > 0) || math.IsInf(t.Weight, 1) {
		return 0
	}
	return t.Weight
}
