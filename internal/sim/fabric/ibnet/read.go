package ibnet

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/reyisjones/gpu-orchestrator/internal/problem"
)

const (
	// maxProblems ends the reading: who has more has one mistake that shows everywhere.
	maxProblems = 100
	// maxLine bounds a line, which is about a hundred bytes long.
	maxLine = 1 << 16
	// maxPorts is more than any switch has: ports are numbered in one byte.
	maxPorts = 254
)

// Read reads the output of ibnetdiscover, with or without its options -f and -g. file is its name
// in messages. The error is a problem.Problems where the file is wrong: a line that is not
// understood, a node or port that is there twice, a link to a node that is not there or whose two
// ends disagree. A link that one end tells of alone is kept and counted.
func Read(file string, in io.Reader) (*Graph, error) {
	r := &reader{file: file, graph: &Graph{byID: map[string]*Node{}}, rates: regexp.MustCompile(`^(\d{1,3})x([A-Z]+\d*)$`)}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	for len(r.problems) < maxProblems && lines.Scan() {
		r.line++
		r.read(strings.TrimRight(lines.Text(), " \t\r"))
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		r.line++
		r.bad(0, fmt.Sprintf("is longer than %d bytes; expected a line of ibnetdiscover", maxLine))
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	if len(r.problems) == 0 {
		r.connect()
	}
	if len(r.problems) == 0 && len(r.graph.Nodes) == 0 {
		r.problems = append(r.problems, problem.Problem{File: file, Text: "there is no node; expected the output of ibnetdiscover"})
	}
	if len(r.problems) > 0 {
		return nil, r.problems
	}
	return r.graph, nil
}

type reader struct {
	file     string
	line     int
	graph    *Graph
	node     *Node // the one whose ports are being read
	lost     bool  // that is one whose first line was not understood
	rates    *regexp.Regexp
	problems problem.Problems
}

// bad notes a problem with the present line, at a column from 1, or 0 for all of it.
func (r *reader) bad(column int, text string) {
	r.problems = append(r.problems, problem.Problem{File: r.file, Line: r.line, Column: column, Text: text})
}

func (r *reader) read(text string) {
	c := &cursor{text: text}
	switch {
	case text == "":
		r.node, r.lost = nil, false
	case strings.HasPrefix(text, "#"), strings.HasPrefix(text, "Chassis "), strings.HasPrefix(text, "Non-Chassis "):
	case strings.HasPrefix(text, "["):
		r.port(c)
	case c.skip("Switch"):
		r.header(c, Switch)
	case c.skip("Ca"):
		r.header(c, HCA)
	case c.skip("Rt"):
		r.header(c, Router)
	default:
		r.attribute(c)
	}
	if c.wrong != "" {
		r.bad(c.at+1, c.wrong)
	}
}

// attribute reads a line such as switchguid=0x2c5eab0300b87b40(2c5eab0300b87b40). Only its form
// matters: the next line has the same in its ID.
func (r *reader) attribute(c *cursor) {
	for _, key := range []string{"vendid=", "devid=", "sysimgguid=", "switchguid=", "caguid=", "rtguid="} {
		if !c.skip(key) {
			continue
		}
		c.expect("0x", "0x and a number")
		c.hex("a number")
		if c.skip("(") {
			c.hex("a GUID")
			c.expect(")", "a )")
		}
		c.comment()
		return
	}
	r.node, r.lost = nil, true
	c.bad("%s; expected Switch, Ca, Rt, a port such as [1], an attribute such as vendid=0x2c9, a comment or an empty line", c.found())
}

// header reads the line that begins a node: Switch 65 "S-…" # "description" …
func (r *reader) header(c *cursor, kind Kind) {
	r.node, r.lost = nil, true
	c.spaces()
	count := c.number(maxPorts, "the number of ports")
	c.spaces()
	at := c.at
	id := c.id()
	if c.wrong == "" && Kind(id[0]) != kind {
		c.at = at + 1
		c.bad("%q is no ID of such a node; expected %c-", id, kind)
	}
	description, _ := c.comment()
	if c.wrong != "" {
		return
	}
	if first := r.graph.byID[id]; first != nil {
		c.at = at
		c.bad("%s is also the node of line %d; expected each once", id, first.line)
		return
	}
	r.lost = false
	r.node = &Node{ID: id, Kind: kind, Description: description, Count: count, line: r.line}
	r.graph.byID[id] = r.node
	r.graph.Nodes = append(r.graph.Nodes, r.node)
}

// port reads a link: [1](GUID) "H-…"[1](GUID) # "description" lid 647 4xNDR
func (r *reader) port(c *cursor) {
	if r.lost {
		return
	}
	if r.node == nil {
		c.bad("a port without a node; expected Switch, Ca or Rt before it")
		return
	}
	p := Port{line: r.line}
	p.Number = c.index(r.node.Count)
	c.guid()
	c.spaces()
	p.column = c.at + 1
	p.peer = c.id()
	p.PeerPort = c.index(maxPorts)
	c.guid()
	_, words := c.comment()
	if c.wrong != "" {
		return
	}
	for _, w := range words {
		if m := r.rates.FindStringSubmatch(w.text); m != nil {
			lanes, _ := strconv.Atoi(m[1]) // up to three digits
			var err error
			if p.Mbps, err = rate(lanes, m[2]); err != nil {
				c.at = w.at
				c.bad("%v", err)
				return
			}
		}
	}
	if first := r.node.port(p.Number); first != nil {
		c.at = 0
		c.bad("port %d is also in line %d; expected each once", p.Number, first.line)
		return
	}
	r.node.Ports = append(r.node.Ports, p)
}

// index reads the number of a port in brackets, and what follows of its number outside the
// chassis.
func (c *cursor) index(most int) int {
	c.expect("[", "a port in brackets, such as [1]")
	n := c.number(most, "the number of a port")
	c.expect("]", "a ]")
	if c.skip("[ext ") {
		c.number(1<<16, "the number of a port outside")
		c.expect("]", "a ]")
	}
	return n
}

// guid goes past (e09d7303007a4bd8), if it is there.
func (c *cursor) guid() {
	if c.skip("(") {
		c.hex("a GUID")
		c.expect(")", "a )")
	}
}

// connect finds the other end of every port.
func (r *reader) connect() {
	for _, n := range r.graph.Nodes {
		for i := range n.Ports {
			p := &n.Ports[i]
			r.line = p.line
			if p.Peer = r.graph.byID[p.peer]; p.Peer == nil {
				r.bad(p.column, fmt.Sprintf("links to %s, which is no node of the file", p.peer))
				continue
			}
			back := p.Peer.port(p.PeerPort)
			switch {
			case back == nil:
				r.graph.OneSided++
			case back.peer != n.ID || back.PeerPort != p.Number:
				r.bad(p.column, fmt.Sprintf("links to port %d of %s, which line %d links to port %d of %s", p.PeerPort, p.peer, back.line, back.PeerPort, back.peer))
			}
			if len(r.problems) >= maxProblems {
				return
			}
		}
	}
}
