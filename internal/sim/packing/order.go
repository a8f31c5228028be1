package packing

import (
	"fmt"
	"math/rand" //nolint:depguard // the published runs drew from this generator; another one gives other orders
)

// watches is how many numbers others drew from the published simulator's stream before it
// shuffled the nodes. They must be the time limits of its Kubernetes client's watches, which come
// from there. Ten were found by trying: with ten, and no other number, the published curves of
// fragmentation are found again to the last digit.
const watches = 10

// maxArrivals ends the lengthening of a list in which next to nothing asks for GPUs.
const maxArrivals = 5_000_000

// order is what a seed decides: which pods arrive one after the other, and where the nodes stand.
type order struct {
	// pods are kinds, in the order of their arrival.
	pods []int32
	// nodes are indexes into Cluster.nodes, first the one that wins every tie.
	nodes []int
	// rest goes on where the order ended.
	rest *rand.Rand
}

// newOrder draws the order as the published simulator does, from one stream of numbers: one is
// thrown away; the pods, by name, are shuffled; pods drawn from the list are added until one more
// would ask for more than tune times the GPUs there are, or, if they ask for more already, pods
// are taken away until they do not; then the nodes, by name, are shuffled. A pod counts with one
// of its GPUs where the end of the list is decided, and with all of them in the sum: that is how
// it was published.
func newOrder(w *Workload, c *Cluster, seed int64, tune float64) (*order, error) {
	r := rand.New(rand.NewSource(seed))
	r.Int()
	o := &order{pods: append([]int32(nil), w.pods...), rest: r}
	r.Shuffle(len(o.pods), func(i, j int) { o.pods[i], o.pods[j] = o.pods[j], o.pods[i] })
	total, target := w.demand, tune*float64(c.capacity())
	switch {
	case float64(total) < target:
		for {
			k := &w.kinds[w.pods[r.Intn(len(w.pods))]]
			if float64(total+int64(k.milli)) > target {
				break
			}
			if len(o.pods) == maxArrivals {
				return nil, fmt.Errorf("playing %s: %d pods ask for %.0f %% of the GPUs only, and %.0f %% are to be asked for", w.Name, maxArrivals, 100*float64(total)/float64(c.capacity()), 100*tune)
			}
			total += k.demand()
			o.pods = append(o.pods, int32(k.id))
		}
	case float64(total) > target:
		for float64(total) > target {
			i := r.Intn(len(o.pods))
			total -= w.kinds[o.pods[i]].demand()
			o.pods = append(o.pods[:i], o.pods[i+1:]...)
		}
	}
	for range watches {
		r.Int63()
	}
	o.nodes = make([]int, len(c.nodes))
	for i, position := range r.Perm(len(c.nodes)) {
		o.nodes[position] = i
	}
	return o, nil
}
