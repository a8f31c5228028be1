package placement

import (
	"math"
	"strings"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/gpu"
)

// maxUnits bounds what a node is believed to have of a resource that counts as a GPU, so that
// no sum here overflows, whatever a node claims.
const maxUnits = 1 << 20

// stock is what a node has left when some pods of a plan are on it. Amounts are floats: exact
// up to 2^53, and beyond that they lose digits instead of wrapping around.
type stock struct {
	c *Candidate
	// pods is how many pods of the plan are on the node.
	pods float64
	// cpu and memory are what is left of both, never below zero.
	cpu, memory float64
	// whole is how many GPUs nobody uses, each of unit thousandths of a physical one: fewer
	// than cluster.Full where the node lends every GPU to several pods.
	whole, unit float64
	// parts are what is left, in thousandths, of the GPUs that are shared already.
	parts  [gpu.MaxGPUs]int16
	shared int
}

// read fills in what the node has left as the candidate's plan finds it.
func (s *stock) read(c *Candidate) {
	s.c, s.unit, s.shared = c, cluster.Full, 0
	s.count(float64(c.Placed))
	if replicas := c.Node.GPU.Replicas; replicas > 1 {
		s.unit /= float64(replicas)
	}
	s.whole = float64(min(max(c.FreeGPUs, 0), maxUnits))
	if c.Node.Board == nil || s.unit < cluster.Full {
		if c.Pod.GPUs == 0 && c.Pod.Milli > 0 {
			s.whole = max(0, s.whole-s.pods) // FreeGPUs does not know of shares.
		}
		return
	}
	whole := float64(c.Whole.Count())
	if c.Pod.sharesGPU() {
		whole = float64(c.Node.WholeGPUs().Count()) // Those of the plan's pods follow below.
	}
	if c.Node.Allocatable.At(c.Pod.GPUResource) == 0 || !c.Pod.namesWhole() {
		s.whole = whole
	}
	s.whole = min(s.whole, whole)
	for i, held := range c.Node.Shares {
		if held > 0 && i < len(s.parts) {
			if free := c.Node.FreeShare(i); free > 0 {
				s.parts[s.shared] = int16(free)
				s.shared++
			}
		}
	}
	if c.Pod.sharesGPU() {
		for range c.Placed {
			if !s.takeShare(c.Pod.Milli) {
				break
			}
		}
	}
}

// take puts one more pod of the candidate on the node.
func (s *stock) take() {
	p := s.c.Pod
	s.count(s.pods + 1)
	switch {
	case len(p.MIG) > 0:
		s.takeInstances()
	case p.sharesGPU():
		s.takeShare(p.Milli)
	case p.GPUs > 0 && (s.c.Node.Board == nil || s.unit < cluster.Full || p.namesWhole()):
		s.whole = max(0, s.whole-float64(p.GPUs))
	}
}

// takeShare takes thousandths of the fullest shared GPU that has them, else of a whole one. It
// is false if none has.
func (s *stock) takeShare(milli int) bool {
	best := -1
	for i := range s.shared {
		if free := int(s.parts[i]); free >= milli && (best < 0 || free < int(s.parts[best])) {
			best = i
		}
	}
	switch {
	case best >= 0:
		s.parts[best] -= int16(milli)
		return true
	case s.whole < 1:
		return false
	}
	s.whole--
	if s.c.Node.Board != nil && s.unit == cluster.Full && s.shared < len(s.parts) {
		s.parts[s.shared] = int16(cluster.Full - milli)
		s.shared++
	}
	return true
}

// takeInstances takes a whole GPU for a pod with MIG instances, unless the node has instances
// already: then they are taken to go beside those.
func (s *stock) takeInstances() {
	if len(s.c.Node.Instances) == 0 {
		s.whole = max(0, s.whole-1)
	}
}

// count notes how many pods of the plan are on the node, and what they leave.
func (s *stock) count(pods float64) {
	s.pods = pods
	s.cpu, s.memory = s.left(cluster.CPU), s.left(cluster.Memory)
}

// left returns what is left of a resource, never below zero.
func (s *stock) left(i int) float64 {
	n := s.c.Node
	return max(0, float64(n.Allocatable.At(i))-float64(n.Used.At(i))-s.pods*float64(s.c.Pod.Resources.At(i)))
}

// inUse returns the share in use of a resource, 0 to 1; false if the node has none of it.
func (s *stock) inUse(i int) (float64, bool) {
	all := float64(s.c.Node.Allocatable.At(i))
	if all <= 0 {
		return 0, false
	}
	return within(1-s.left(i)/all, 0, 1), true
}

// idle is how many thousandths of GPUs nobody uses.
func (s *stock) idle() float64 {
	idle := s.whole * s.unit
	for _, free := range s.parts[:s.shared] {
		idle += float64(free)
	}
	return idle
}

// gpusInUse returns the share of the node's GPUs in use, 0 to 1; false if it has none.
func (s *stock) gpusInUse() (float64, bool) {
	all := float64(s.c.Node.Allocatable.At(s.c.Pod.GPUResource)) * s.unit
	if s.c.Node.Board != nil && s.unit == cluster.Full {
		all = float64(s.c.Node.EmptyGPUs().Count()) * cluster.Full
	}
	if all <= 0 {
		return 0, false
	}
	return within(1-s.idle()/all, 0, 1), true
}

// sharesGPU tells whether the pod takes thousandths of a GPU, not units of a resource.
func (q *Shape) sharesGPU() bool {
	return q.Milli > 0 && q.Milli < cluster.Full && q.GPUs == 0
}

// namesWhole tells whether the pod's resource counts whole GPUs, rather than MIG instances or
// what a GPU is lent out as.
func (q *Shape) namesWhole() bool {
	return !strings.HasPrefix(q.GPUResourceName, migPrefix) && !strings.HasSuffix(q.GPUResourceName, sharedSuffix)
}

// within returns x, or the nearest bound; the lower one if x is not a number.
func within(x, low, high float64) float64 {
	if math.IsNaN(x) {
		return low
	}
	return min(max(x, low), high)
}
