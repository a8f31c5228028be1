package packing

import (
	"fmt"
	"math/rand" //nolint:depguard // the generator of the published runs
	"slices"
	"testing"

	"github.com/reyisjones/gpu-orchestrator/internal/sim/trace"
)

// TestTheEndOfAList: cluster and pods are so that the sums can be done by hand.
func TestTheEndOfAList(t *testing.T) {
	c := newTestCluster(t, trace.Node{Name: "a", GPUs: 8}, trace.Node{Name: "b", GPUs: 2})
	for name, tc := range map[string]struct {
		pods []trace.Pod
		tune float64
		want int
	}{
		// 2, 4 … 12 GPUs; 12 and one of the next pod's GPUs are not more than 13, so that 14 are
		// asked for before it ends.
		"a pod counts with one of its GPUs": {[]trace.Pod{{Name: "p", GPUs: 2, Milli: 1000}}, 1.3, 7},
		"shares":                            {[]trace.Pod{{Name: "p", GPUs: 1, Milli: 300}}, 0.1, 3},
		"exactly as much":                   {[]trace.Pod{{Name: "p", GPUs: 5, Milli: 1000}, {Name: "q", GPUs: 8, Milli: 1000}}, 1.3, 2},
		// 24 GPUs are asked for; without one pod 16, without another 8.
		"too much": {[]trace.Pod{{Name: "p", GPUs: 8, Milli: 1000}, {Name: "q", GPUs: 8, Milli: 1000}, {Name: "r", GPUs: 8, Milli: 1000}}, 1.3, 1},
	} {
		o, err := newOrder(newTestWorkload(t, c, tc.pods...), c, 42, tc.tune)
		if err != nil || len(o.pods) != tc.want {
			t.Errorf("%s: %d pods, %v; want %d", name, len(o.pods), err, tc.want)
		}
	}
}

// TestTheStream draws the numbers one by one, in the order in which the published simulator does.
func TestTheStream(t *testing.T) {
	c, w := drawn(t, 1, 30, 50)
	o, err := newOrder(w, c, 7, 1.3)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewSource(7))
	r.Int()
	pods := slices.Clone(w.pods)
	r.Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
	demand := int64(0)
	for _, id := range pods {
		demand += w.kinds[id].demand()
	}
	for {
		id := w.pods[r.Intn(len(w.pods))]
		if float64(demand+int64(w.kinds[id].milli)) > 1.3*float64(c.capacity()) {
			break
		}
		demand += w.kinds[id].demand()
		pods = append(pods, id)
	}
	for range 10 {
		r.Float64()
	}
	if !slices.Equal(o.pods, pods) {
		t.Error("pods arrive in another order")
	}
	for node, position := range r.Perm(len(c.nodes)) {
		if o.nodes[position] != node {
			t.Fatalf("node %d is not at position %d", node, position)
		}
	}
	if o.rest.Int63() != r.Int63() {
		t.Error("the stream goes on elsewhere")
	}
}

// TestNodesAndPodsGoByName: the order of the rows decides nothing.
func TestNodesAndPodsGoByName(t *testing.T) {
	nodes := []trace.Node{{Name: "n10", GPUs: 1}, {Name: "n2", GPUs: 2}, {Name: "n1", GPUs: 4}}
	pods := []trace.Pod{{Name: "p2", GPUs: 1, Milli: 1000}, {Name: "p10", GPUs: 2, Milli: 1000}, {Name: "p1", CPUMilli: 5}}
	shown := func() string {
		c := newTestCluster(t, nodes...)
		w := newTestWorkload(t, c, pods...)
		text := ""
		for _, n := range c.nodes {
			text += n.Name + " "
		}
		for _, id := range w.pods {
			text += fmt.Sprint(w.kinds[id].gpus, " ")
		}
		return text
	}
	first := shown()
	slices.Reverse(nodes)
	slices.Reverse(pods)
	if second := shown(); first != second || first != "n1 n10 n2 0 2 1 " {
		t.Errorf("%q, and turned round %q", first, second)
	}
}

func TestAListThatHardlyAsksForGPUs(t *testing.T) {
	c := newTestCluster(t, trace.Node{Name: "a", GPUs: 64})
	pods := []trace.Pod{{Name: "last", GPUs: 1, Milli: 1}}
	for i := range 100_000 {
		pods = append(pods, trace.Pod{Name: fmt.Sprint(i)})
	}
	if _, err := newOrder(newTestWorkload(t, c, pods...), c, 1, 10); err == nil {
		t.Error("millions of pods without GPUs were added")
	}
}
