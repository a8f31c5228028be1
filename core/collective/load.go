package collective

import "math"

// grain is what flows are counted in: their sums are exact then, and what was added can be taken
// away without a trace.
const grain = 1.0 / 1024

// Load is how many flows of running gangs are on each uplink. It is for one goroutine at a time.
type Load struct {
	// flows is by level, NIC first, and domain.
	flows [][]float64
}

// NewLoad returns a network that nobody is on.
func (m *Model) NewLoad() *Load {
	l := &Load{flows: make([][]float64, len(m.sizes)+1)}
	l.flows[0] = make([]float64, m.nodes)
	for i, n := range m.sizes {
		l.flows[i+1] = make([]float64, n)
	}
	return l
}

// Add puts a gang's crossings on the network. The weight is the share of the time in which the
// gang communicates, 1 for always; each flow counts for so much, rounded to 1/1024.
func (l *Load) Add(crossings []Crossing, weight float64) {
	for _, c := range crossings {
		l.flows[c.Level+1][c.Domain] += grains(c.Flows * weight)
	}
}

// Remove takes away what Add put there with the same crossings and weight.
func (l *Load) Remove(crossings []Crossing, weight float64) {
	for _, c := range crossings {
		l.flows[c.Level+1][c.Domain] -= grains(c.Flows * weight)
	}
}

func grains(flows float64) float64 { return math.Round(flows/grain) * grain }

// Flows returns how many there are on the uplink of a domain, or on the NIC of a node.
func (l *Load) Flows(level, domain int) float64 { return l.flows[level+1][domain] }

// others returns the flows that a crossing meets; none in a nil load.
func (l *Load) others(c *Crossing) float64 {
	if l == nil {
		return 0
	}
	return l.flows[c.Level+1][c.Domain]
}
