package fabric

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/reyisjones/gpu-orchestrator/core/collective"
	"github.com/reyisjones/gpu-orchestrator/core/gpu"
)

const (
	// maxNodes bounds a shape: a typing error must not ask for more memory than there is.
	maxNodes = 1 << 17
	// What a fat tree has where its shape does not tell.
	defaultNodesPerLeaf   = 16
	defaultLeavesPerSpine = 32
	// maxOversubscription is more than anybody builds, and leaves every uplink something.
	maxOversubscription = 1000

	example = "as in fattree:1024x8, fattree:40x8/16/32@H100,oversubscription=2 or flat:64x8"
)

// shape is a cluster as a line of text.
type shape struct {
	Machine
	tree                         bool
	nodes                        int
	nodesPerLeaf, leavesPerSpine int
	oversubscription             float64 // 0 if not told
	routing                      *collective.Routing
}

// IsShape tells whether a source of a cluster is a shape, right or wrong, and no file.
func IsShape(source string) bool {
	return strings.HasPrefix(source, "fattree:") || strings.HasPrefix(source, "flat:")
}

// Shape makes the cluster of a shape:
//
//	fattree:NODESxGPUS[/NODES A LEAF[/LEAVES A SPINE]][@MODEL][,oversubscription=N][,routing=ROUTING]
//	flat:NODESxGPUS[@MODEL]
//
// There are 16 nodes a leaf and 32 leaves a spine unless it says otherwise, and H100s. Leaves are
// filled one after the other, the last may be left half empty. With an oversubscription of 2,
// leaf uplinks carry half of what the NICs of a full leaf send. With hashed routing, each flow
// stays on one link of an uplink; adaptive routing, which is what it has otherwise, spreads them. The
// error says what is wrong where in the text, and what was expected.
func Shape(text string) (*Cluster, error) {
	p := &shapeParser{text: text}
	s := p.shape()
	if p.err != nil {
		return nil, p.err
	}
	return s.build()
}

type shapeParser struct {
	text string
	at   int
	err  error
}

// bad notes what is wrong at a place of the text. Only the first mistake is told: the rest may
// follow from it.
func (p *shapeParser) bad(at int, format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("cluster %q: character %d: %s, %s", p.text, at+1, fmt.Sprintf(format, args...), example)
	}
}

// found shows what is at the place where something else was expected.
func (p *shapeParser) found() string {
	if p.at >= len(p.text) {
		return "the text ends"
	}
	return fmt.Sprintf("found %q", p.text[p.at:])
}

func (p *shapeParser) skip(prefix string) bool {
	if p.err != nil || !strings.HasPrefix(p.text[p.at:], prefix) {
		return false
	}
	p.at += len(prefix)
	return true
}

func (p *shapeParser) shape() shape {
	s := shape{tree: p.skip("fattree:"), nodesPerLeaf: defaultNodesPerLeaf, leavesPerSpine: defaultLeavesPerSpine}
	if !s.tree && !p.skip("flat:") {
		p.bad(0, "%s; expected fattree: or flat:", p.found())
	}
	s.nodes = p.number("the number of nodes", maxNodes)
	if !p.skip("x") {
		p.bad(p.at, "%s; expected x and the GPUs of a node", p.found())
	}
	s.GPUs = p.number("the GPUs of a node", gpu.MaxGPUs)
	if slash := p.at; p.skip("/") {
		if !s.tree {
			p.bad(slash, "flat has no leaves; expected @, a comma or the end")
		}
		s.nodesPerLeaf = p.number("the nodes of a leaf", maxNodes)
		if p.skip("/") {
			s.leavesPerSpine = p.number("the leaves of a spine", maxNodes)
		}
	}
	if p.skip("@") {
		s.Model = p.model()
	}
	for p.skip(",") {
		p.option(&s)
	}
	if p.err == nil && p.at < len(p.text) {
		p.bad(p.at, "%s; expected /, @, a comma or the end", p.found())
	}
	s.Machine = s.filled()
	return s
}

// number reads a whole number of 1 to most.
func (p *shapeParser) number(what string, most int) int {
	if p.err != nil {
		return 0
	}
	end := p.at
	for end < len(p.text) && '0' <= p.text[end] && p.text[end] <= '9' {
		end++
	}
	n, err := strconv.Atoi(p.text[p.at:end])
	switch {
	case end == p.at:
		p.bad(p.at, "%s; expected %s", p.found(), what)
	case err != nil || n < 1 || n > most:
		p.bad(p.at, "%s; expected %s, 1 to %d", p.text[p.at:end], what, most)
	}
	p.at = end
	return n
}

// model reads the name of a GPU, up to a comma.
func (p *shapeParser) model() string {
	if p.err != nil {
		return ""
	}
	name, _, _ := strings.Cut(p.text[p.at:], ",")
	if name == "" || strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.") != "" {
		p.bad(p.at, "%s; expected a model of GPU in letters, digits, -, _ and .", p.found())
	}
	p.at += len(name)
	return name
}

// option reads what follows a comma.
func (p *shapeParser) option(s *shape) {
	at := p.at
	switch {
	case p.skip("oversubscription="):
		p.oversubscription(at, s)
	case p.skip("routing="):
		p.routing(at, s)
	default:
		p.bad(at, "%s; expected oversubscription= or routing=", p.found())
	}
}

// oversubscription reads that, of which the option began at the given place.
func (p *shapeParser) oversubscription(at int, s *shape) {
	switch {
	case !s.tree:
		p.bad(at, "flat has no uplinks to oversubscribe; expected fattree: or no oversubscription")
	case s.oversubscription != 0:
		p.bad(at, "oversubscription is there twice; expected it once")
	}
	text, _, _ := strings.Cut(p.text[p.at:], ",")
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(n) || n < 1 || n > maxOversubscription {
		p.bad(p.at, "%s; expected a number of 1 to %d", p.found(), maxOversubscription)
	}
	p.at += len(text)
	s.oversubscription = n
}

// routing reads that, of which the option began at the given place.
func (p *shapeParser) routing(at int, s *shape) {
	switch {
	case !s.tree:
		p.bad(at, "flat has no uplinks to route over; expected fattree: or no routing")
	case s.routing != nil:
		p.bad(at, "routing is there twice; expected it once")
	}
	text, _, _ := strings.Cut(p.text[p.at:], ",")
	r, err := routingOf(text)
	if err != nil {
		p.bad(p.at, "%s; %v", p.found(), err)
	}
	p.at += len(text)
	s.routing = &r
}

// routingOf reads the name of a routing.
func routingOf(name string) (collective.Routing, error) {
	for _, r := range []collective.Routing{collective.Adaptive, collective.Hashed} {
		if name == r.String() {
			return r, nil
		}
	}
	return 0, fmt.Errorf("expected %s or %s", collective.Adaptive, collective.Hashed)
}
