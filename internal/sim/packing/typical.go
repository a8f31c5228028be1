package packing

import (
	"cmp"
	"slices"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// popular is the share of a workload's pods that its typical pods are.
const popular = 0.95

// typical are the commonest pods of a workload with their shares: what fragmentation is measured
// against, and what FGD knows of its workload.
type typical []typicalPod

type typicalPod struct {
	kind
	share float64
}

// newTypical takes the commonest pods until they are popular. Memory does not tell them apart,
// and among pods that are equally common the larger come first.
func newTypical(w *Workload) typical {
	type request struct {
		cpu         int64
		gpus, milli int
		spec        string
	}
	var all typical
	known := map[request]int{}
	for _, k := range w.kinds {
		q := request{k.cpu, k.gpus, k.milli, k.spec}
		if i, ok := known[q]; ok {
			all[i].count += k.count
			continue
		}
		known[q] = len(all)
		all = append(all, typicalPod{kind: k})
	}
	slices.SortFunc(all, func(a, b typicalPod) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(b.cpu, a.cpu), cmp.Compare(b.milli, a.milli),
			cmp.Compare(b.gpus, a.gpus), cmp.Compare(b.spec, a.spec))
	})
	total, sum := float64(len(w.pods)), 0.0
	n := 0
	for ; sum < popular*total; n++ {
		sum += float64(all[n].count)
		all[n].share = float64(all[n].count) / total
	}
	for i := range all[:n] {
		all[i].share /= sum / total
	}
	return all[:n]
}

// Why a typical pod cannot use what is idle on a node. Sums are kept apart by it because FGD
// rounds down what it makes of them: added in another order they differ in the last digit, and
// nodes that are equal would not be.
const (
	lacksBoth = iota
	lacksGPU
	lacksCPU
	wantsNone
	wantsNoneLacksCPU
	wrongModel
	reasons
)

// fragmentation is F_n(M) of the FGD paper: how many thousandths of the node's idle GPUs a
// typical pod cannot use, in the mean. A pod that fits can use every GPU that has as much left as
// it wants of each, and one without GPUs can use none.
func (t typical) fragmentation(n *node) float64 {
	if n.idle == 0 {
		return 0
	}
	var sums [reasons]float64
	idle := float64(n.idle)
	for i := range t {
		p := &t[i]
		fed := n.cpu >= p.cpu
		if p.gpus == 0 {
			if fed {
				sums[wantsNone] += p.share * idle
			} else {
				sums[wantsNoneLacksCPU] += p.share * idle
			}
			continue
		}
		if !p.runsOn(n.model) {
			sums[wrongModel] += p.share * idle
			continue
		}
		able, fragments := n.able(p.milli)
		switch {
		case able >= p.gpus && fed:
			sums[lacksGPU] += p.share * float64(fragments)
		case able >= p.gpus:
			sums[lacksCPU] += p.share * idle
		case fed:
			sums[lacksGPU] += p.share * idle
		default:
			sums[lacksBoth] += p.share * idle
		}
	}
	f := 0.0
	for _, s := range sums {
		f += s
	}
	return f
}

// able returns how many GPUs have so many thousandths left, and what is left of the others.
func (n *node) able(milli int) (count, fragments int) {
	if milli == cluster.Full {
		return n.whole, n.idle - n.whole*cluster.Full
	}
	for _, left := range n.left {
		if left >= milli {
			count++
		} else {
			fragments += left
		}
	}
	return count, fragments
}
