package placement

import (
	"math"
	"strings"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// maxPods caps how many pods of one shape are counted on one node, so that a shape that asks
// for nothing does not overflow the sums of a large cluster.
const maxPods = 1 << 20

// need is a Shape made ready for one table of resources.
type need struct {
	Shape
	// whole says that GPUs are whole GPUs of a node's Board, rather than units of a resource
	// of which the Board knows nothing, such as MIG instances.
	whole bool
	// offers are the resources that a share of a GPU may come from.
	offers []shareResource
	// resources is the table that the need was made ready for.
	resources *cluster.Resources
}

// shareResource is a resource by which nodes give out shares of GPUs.
type shareResource struct {
	kind  shareKind
	name  string
	index int
	// units is what one pod takes of it; slots is the index of the resource that counts the
	// pods that fit beside it, -1 if there is none.
	units int64
	slots int
}

type shareKind int

const (
	replica shareKind = iota
	migInstance
	hamiCores
)

// The resources by which the field gives out shares (device plugin, MIG manager, HAMi).
const (
	wholeResource  = "nvidia.com/gpu"
	sharedResource = "nvidia.com/gpu.shared"
	coresResource  = "nvidia.com/gpucores"
	migPrefix      = "nvidia.com/mig-"
	sharedSuffix   = ".shared"
)

func newNeed(shape *Shape, resources *cluster.Resources) need {
	q := need{Shape: *shape, resources: resources}
	q.whole = q.GPUs > 0 && q.Milli == 0 &&
		!strings.HasPrefix(q.GPUResourceName, migPrefix) && !strings.HasSuffix(q.GPUResourceName, sharedSuffix)
	if q.Milli > 0 && q.GPUs == 0 {
		q.offers = shareResources(resources, int64(q.Milli))
	}
	return q
}

// shareResources lists what the cluster's nodes may give a share of milli thousandths from, in
// the order in which it is taken: what is made for sharing before instances that a larger
// request could use.
func shareResources(resources *cluster.Resources, milli int64) []shareResource {
	var found []shareResource
	if i := resources.Index(sharedResource); i >= 0 {
		found = append(found, shareResource{kind: replica, name: sharedResource, index: i, units: 1, slots: -1})
	}
	if i := resources.Index(coresResource); i >= 0 {
		// HAMi counts cores in percent of a GPU, and every pod takes one of the node's slots.
		found = append(found, shareResource{
			kind: hamiCores, name: coresResource, index: i, units: (milli + 9) / 10, slots: resources.Index(wholeResource),
		})
	}
	for i := range resources.Len() {
		if name := resources.Name(i); strings.HasPrefix(name, migPrefix) && !strings.HasSuffix(name, sharedSuffix) {
			found = append(found, shareResource{kind: migInstance, name: name, index: i, units: 1, slots: -1})
		}
	}
	return found
}

// offered tells whether the node has the resource in units large enough for the share. The
// second result is the size of a unit in thousandths.
func (q *need) offered(n *cluster.Machine, o *shareResource) (ok bool, unit int) {
	if n.Allocatable.At(o.index) == 0 {
		return false, 0
	}
	switch o.kind {
	case replica:
		unit = replicaMilli(n)
	case hamiCores:
		unit = cluster.Full
	case migInstance:
		if n.Geometry == nil {
			return false, 0
		}
		p, known := n.Geometry.Profile(strings.TrimPrefix(o.name, migPrefix))
		if !known {
			return false, 0
		}
		unit = n.Geometry.Milli(p)
	}
	return unit >= q.Milli, unit
}

// replicaMilli returns the share of a GPU that one replica is. Of a node that does not tell how
// many there are nothing is known: the least there can be.
func replicaMilli(n *cluster.Machine) int {
	if n.GPU.Replicas < 1 {
		return 1
	}
	return cluster.Full / n.GPU.Replicas
}

// use returns what one pod takes for the share.
func (o *shareResource) use() cluster.Vector {
	v := make(cluster.Vector, max(o.index, o.slots)+1)
	v[o.index] = o.units
	if o.slots >= 0 {
		v[o.slots] = 1
	}
	return v
}

// fits returns how many pods the node takes now, and if none, why. Kind is what filterKind
// said of its machine. It is exact but where counting the MIG instances of several profiles that
// fit takes too long: then more pods may fit.
func (q *need) fits(n *cluster.Node, kind Reason) (pods int32, why Reason, exact bool) {
	if kind != Fits {
		return 0, kind, true
	}
	room := n.Fits(q.Resources, maxPods)
	if room == 0 {
		if q.GPUs > 0 && n.Free(q.GPUResource) < q.GPUs {
			return 0, GPUsTaken, true
		}
		return 0, OthersTaken, true
	}
	exact = true
	switch {
	case len(q.MIG) > 0:
		var k int
		k, exact = n.Geometry.Fits(n.Instances, n.PartitionGPUs(), q.MIG, int(room))
		if room = int64(k); room == 0 {
			return 0, MIGTaken, exact
		}
	case q.whole && n.Board != nil:
		if room = min(room, q.sets(n)); room == 0 {
			return 0, GPUsTaken, true
		}
	case q.Milli > 0 && q.GPUs == 0:
		if room = min(room, q.shares(n)); room == 0 {
			return 0, GPUsTaken, true
		}
	}
	return int32(room), Fits, exact
}

// sets returns how many pods find whole GPUs on the node's Board.
func (q *need) sets(n *cluster.Node) int64 {
	free := n.WholeGPUs()
	if q.Include != 0 {
		// The GPUs that must be among the chosen are there once.
		if q.Include&^free != 0 || int64(q.Include.Count()) > q.GPUs || int64(free.Count()) < q.GPUs {
			return 0
		}
		return 1
	}
	return int64(free.Count()) / q.GPUs
}

// shares returns how many pods find a share on the node.
func (q *need) shares(n *cluster.Node) int64 {
	total, offers := int64(0), false
	for i := range q.offers {
		o := &q.offers[i]
		if ok, _ := q.offered(n.Machine, o); !ok {
			continue
		}
		offers = true
		room := n.Free(o.index) / o.units
		if o.slots >= 0 {
			room = min(room, n.Free(o.slots))
		}
		total += room
	}
	if offers || n.Board == nil {
		return total
	}
	for i := range n.Board.Count() {
		total += int64(n.FreeShare(i) / q.Milli)
	}
	return total
}

// offersShares tells whether the node gives out shares in any way, and in parts that are large
// enough.
func (q *need) offersShares(m *cluster.Machine) Reason {
	reason := NoShares
	for i := range q.offers {
		ok, unit := q.offered(m, &q.offers[i])
		if ok {
			return Fits
		}
		if unit > 0 {
			reason = ShareTooSmall
		}
	}
	if reason == NoShares && m.Board != nil && m.EmptyGPUs() != 0 {
		return Fits
	}
	return reason
}

// fitsEmpty returns how many pods the machine would take if nothing ran and all of it worked,
// and whether that is exact.
func (q *need) fitsEmpty(m *cluster.Machine) (pods int32, exact bool) {
	whole := m
	if m.Broken != 0 {
		mended := *m
		mended.Broken = 0
		whole = &mended
	}
	why := q.matches(whole)
	if why == Fits && q.refusal(m) != "" {
		why = ByPolicy // Asked about the machine as it is: Rules know it by its address.
	}
	pods, _, exact = q.fits(&cluster.Node{Machine: whole}, why)
	return pods, exact
}

// weigh returns a number that grows with what the pod takes: the GPUs first, then the largest
// part of any resource of total. It orders groups by how hard they are to place.
func (q *need) weigh(total cluster.Vector) float64 {
	w := 1000*float64(q.GPUs) + float64(q.Milli) + 100*float64(len(q.MIG))
	for i, want := range q.Resources {
		if have := total.At(i); want > 0 && have > 0 {
			w += math.Min(1, float64(want)/float64(have))
		}
	}
	return w
}
