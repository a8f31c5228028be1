package fabric

import (
	"strings"
	"testing"
)

func TestGrow(t *testing.T) {
	c, err := Shape("fattree:20x8/4/2@H100,oversubscription=2")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Grow(5); err != nil {
		t.Fatal(err)
	}
	s, err := c.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	leaf, _ := s.Level("leaf")
	var sizes []int
	for _, d := range s.Domains(leaf) {
		if strings.HasPrefix(s.DomainName(d), "added") {
			sizes = append(sizes, d.End-d.First)
		}
	}
	if s.Len() != 25 || len(sizes) != 2 || sizes[0]+sizes[1] != 5 || max(sizes[0], sizes[1]) != 4 {
		t.Errorf("%d nodes, added leaves of %v; want 25, of 4 and 1", s.Len(), sizes)
	}
	n := s.Node("added-0001")
	if n == nil || n.Allocatable.At(s.Resources.Index(gpuResource)) != 8 || n.GPU.Product != c.Nodes[0].GPU.Product {
		t.Errorf("the node added is %+v", n)
	}
	if len(c.Uplinks) != 5+2 || c.Uplinks[6].Mbps != c.Uplinks[0].Mbps {
		t.Errorf("uplinks are %+v", c.Uplinks)
	}
	if err := c.Grow(1); err != nil || len(c.Nodes) != 26 || c.Nodes[25].Name != "added-0006" {
		t.Errorf("grown again: %v, %s", err, c.Nodes[len(c.Nodes)-1].Name)
	}
	if err := c.Grow(-1); err == nil {
		t.Error("fewer nodes are refused")
	}
	flat, err := Shape("flat:4x8")
	if err != nil {
		t.Fatal(err)
	}
	if err := flat.Grow(2); err != nil {
		t.Fatal(err)
	}
	if s, err := flat.Snapshot(); err != nil || s.Len() != 6 {
		t.Errorf("a flat cluster of %v, %v", s, err)
	}
}
