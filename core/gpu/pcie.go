package gpu

import (
	"fmt"
	"strings"
)

// PCIe is the class of the path between two GPUs over PCIe, in the words of `nvidia-smi topo`.
// A larger one is closer; the zero value is unknown.
type PCIe uint8

// The classes, from the farthest to the closest. SELF between two different GPUs means that
// they sit on one board.
const (
	UnknownPCIe PCIe = iota
	SYS              // across CPU sockets
	NODE             // across host bridges of one NUMA node
	PHB              // through one host bridge
	PXB              // through several PCIe switches
	PIX              // through one PCIe switch
	SELF             // the same GPU, or the same board
)

// String returns the class as ParsePCIe reads it.
func (p PCIe) String() string {
	switch p {
	case UnknownPCIe:
		return "unknown"
	case SYS:
		return "SYS"
	case NODE:
		return "NODE"
	case PHB:
		return "PHB"
	case PXB:
		return "PXB"
	case PIX:
		return "PIX"
	case SELF:
		return "SELF"
	}
	return fmt.Sprintf("PCIe(%d)", uint8(p))
}

// ParsePCIe reads a class in upper or lower case. "X", as nvidia-smi writes its diagonal, is
// SELF.
func ParsePCIe(s string) (PCIe, error) {
	name := strings.TrimSpace(s)
	if strings.EqualFold(name, "X") {
		return SELF, nil
	}
	for p := UnknownPCIe; p <= SELF; p++ {
		if strings.EqualFold(name, p.String()) {
			return p, nil
		}
	}
	return UnknownPCIe, fmt.Errorf("%q is no PCIe class: one of SELF, PIX, PXB, PHB, NODE and SYS, or unknown", s)
}
