package collective

// Routing is how the flows over an uplink are given to its links.
type Routing int

// The routings.
const (
	// Adaptive routing spreads what crosses an uplink evenly over its links, as switches do that
	// choose a link for each packet. It is what a Fabric has that does not tell.
	Adaptive Routing = iota
	// Hashed routing puts each flow on one link, where it stays: ECMP on Ethernet, and the static
	// routes of InfiniBand. Flows meet on a link while others are idle.
	Hashed
)

// String names the routing.
func (r Routing) String() string {
	if r == Hashed {
		return "hashed"
	}
	return "adaptive"
}
