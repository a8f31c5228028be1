package ibnet

import "strings"

// Kind is what a node of the fabric is.
type Kind byte

// The kinds of nodes.
const (
	Switch Kind = 'S'
	HCA    Kind = 'H'
	Router Kind = 'R'
)

// Graph is a fabric: its nodes in the order of the file.
type Graph struct {
	Nodes []*Node
	// OneSided is how many links only one of their ends tells of.
	OneSided int
	byID     map[string]*Node
}

// Node is a switch, an HCA or a router.
type Node struct {
	// ID is unique in the fabric: "S-2c5eab0300b87b40".
	ID   string
	Kind Kind
	// Description is what the node says of itself: "MF0;A09-P1-IBLEAF-04-04:MQM9701/U1",
	// "a08-p1-dgx-04-c01 mlx5_5".
	Description string
	// Ports are those that are linked, in the order of the file; Count is how many there are.
	Ports []Port
	Count int

	line int
}

// Port is a linked port.
type Port struct {
	Number int
	// Peer and PeerPort are the other end.
	Peer     *Node
	PeerPort int
	// Mbps is the rate of the link, 0 where the file does not tell.
	Mbps int64

	line, column int
	peer         string
}

// Name returns a name for people: of a switch what lies between ; and : in its description, as
// managed switches put theirs there; else the description, or the ID where there is none.
func (n *Node) Name() string {
	name := n.Description
	if n.Kind == Switch {
		if _, inside, ok := strings.Cut(name, ";"); ok {
			name, _, _ = strings.Cut(inside, ":")
		}
	}
	if name = strings.TrimSpace(name); name == "" {
		return n.ID
	}
	return name
}

// Aggregates tells whether an HCA is that of a switch itself, which reduces in the network (SHARP).
func (n *Node) Aggregates() bool {
	return n.Kind == HCA && strings.Contains(n.Description, "Aggregation Node")
}

// Host returns the host of an HCA and the HCA's name there: "a08-p1-dgx-04-c01 mlx5_5" is mlx5_5
// of a08-p1-dgx-04-c01. It is false for an HCA that tells no host, such as one that gives its
// model, "MT4129 ConnectX7   Mellanox Technologies", as it does before the host has booted, or
// localhost.
func (n *Node) Host() (host, adapter string, ok bool) {
	words := strings.Fields(n.Description)
	if n.Kind != HCA || len(words) != 2 || strings.EqualFold(words[0], "localhost") || n.Aggregates() {
		return "", "", false
	}
	return words[0], words[1], true
}

// port returns the linked port of that number, or nil.
func (n *Node) port(number int) *Port {
	for i := range n.Ports {
		if n.Ports[i].Number == number {
			return &n.Ports[i]
		}
	}
	return nil
}
