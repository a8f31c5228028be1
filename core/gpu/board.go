package gpu

import (
	"errors"
	"fmt"
	"slices"
	"sync"
)

// Wiring is what a node tells of its GPUs. A slice that is nil was not told.
type Wiring struct {
	// Count is the number of GPUs; 0 derives it from the first slice that is told.
	Count int
	// Links holds the number of NVLinks between the GPUs i and j.
	Links [][]int
	// PCIe holds the class of the path between the GPUs i and j.
	PCIe [][]PCIe
	// NUMA holds the NUMA node of each GPU; -1, as Linux writes it, is unknown.
	NUMA []int
}

const (
	// maxLinks is more than any GPU has to another: 18 with NVLink 4 and 5.
	maxLinks = 64
	// maxNUMA is the most NUMA nodes that Linux can be built for.
	maxNUMA = 1024
)

// Board is how the GPUs of a kind of node are wired. It never changes, may be read by many at
// a time and should be shared by all nodes of its kind: what it works out, it keeps.
type Board struct {
	count int
	links pairs    // nil if unknown
	pcie  [][]PCIe // nil if unknown
	numa  []int    // nil if unknown, -1 for a GPU whose node is unknown
	score pairs    // what the two GPUs of a pair are worth to each other

	// Worked out when first asked for.
	scoreSums struct {
		once sync.Once
		sums []int32 // by set: the score of its pairs
	}
	tables [tableGPUs + 1]table // by size of the set
	most   struct {
		once  sync.Once
		links []int // by size of the set
	}
}

// NewBoard checks a wiring and copies it. The error names the field and the place.
func NewBoard(w Wiring) (*Board, error) {
	n, err := w.size()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(checkLinks(w.Links, n), checkPCIe(w.PCIe, n), checkNUMA(w.NUMA, n)); err != nil {
		return nil, err
	}
	b := &Board{count: n, score: newPairs(n)}
	if w.Links != nil {
		b.links = newPairs(n)
		for i, row := range w.Links {
			for j, links := range row {
				b.links[i][j] = int32(links) // at most maxLinks
			}
		}
	}
	if w.PCIe != nil {
		b.pcie = make([][]PCIe, n)
		for i, row := range w.PCIe {
			b.pcie[i] = slices.Clone(row)
		}
	}
	b.numa = slices.Clone(w.NUMA)
	b.scorePairs()
	return b, nil
}

// size returns the number of GPUs, given or derived.
func (w Wiring) size() (int, error) {
	n := w.Count
	for _, told := range []int{len(w.Links), len(w.PCIe), len(w.NUMA)} {
		if n == 0 {
			n = told
		}
	}
	switch {
	case n < 0:
		return 0, fmt.Errorf("count is %d: a node cannot have fewer than no GPUs", n)
	case n == 0:
		return 0, errors.New("count is 0, and neither links nor pcie nor numa say how many GPUs there are")
	case n > MaxGPUs:
		return 0, fmt.Errorf("count is %d: a node can have at most %d GPUs", n, MaxGPUs)
	}
	return n, nil
}

func checkLinks(links [][]int, n int) error {
	if links == nil {
		return nil
	}
	if err := checkSquare("links", links, n); err != nil {
		return err
	}
	for i, row := range links {
		for j, here := range row {
			switch there := links[j][i]; {
			case here < 0 || here > maxLinks:
				return fmt.Errorf("links[%d][%d] is %d: it must be between 0 and %d", i, j, here, maxLinks)
			case i == j && here != 0:
				return fmt.Errorf("links[%d][%d] is %d: a GPU has no link to itself", i, j, here)
			case here != there:
				return fmt.Errorf("links[%d][%d] is %d, links[%d][%d] is %d: the matrix must be symmetric", i, j, here, j, i, there)
			}
		}
	}
	return nil
}

func checkPCIe(pcie [][]PCIe, n int) error {
	if pcie == nil {
		return nil
	}
	if err := checkSquare("pcie", pcie, n); err != nil {
		return err
	}
	for i, row := range pcie {
		for j, here := range row {
			switch there := pcie[j][i]; {
			case here > SELF:
				return fmt.Errorf("pcie[%d][%d] is %d: no such class", i, j, here)
			case i == j && here != SELF && here != UnknownPCIe:
				return fmt.Errorf("pcie[%d][%d] is %s: the path of a GPU to itself is SELF", i, j, here)
			case here != there:
				return fmt.Errorf("pcie[%d][%d] is %s, pcie[%d][%d] is %s: the matrix must be symmetric", i, j, here, j, i, there)
			}
		}
	}
	return nil
}

func checkNUMA(numa []int, n int) error {
	if numa == nil {
		return nil
	}
	if len(numa) != n {
		return fmt.Errorf("numa has %d entries, there are %d GPUs", len(numa), n)
	}
	for i, node := range numa {
		if node < -1 || node >= maxNUMA {
			return fmt.Errorf("numa[%d] is %d: it must be between 0 and %d, or -1 for unknown", i, node, maxNUMA-1)
		}
	}
	return nil
}

func checkSquare[T any](field string, matrix [][]T, n int) error {
	if len(matrix) != n {
		return fmt.Errorf("%s has %d rows, there are %d GPUs", field, len(matrix), n)
	}
	for i, row := range matrix {
		if len(row) != n {
			return fmt.Errorf("%s[%d] has %d entries, there are %d GPUs", field, i, len(row), n)
		}
	}
	return nil
}

// Count returns the number of GPUs.
func (b *Board) Count() int { return b.count }

// Wiring returns what the board was made of, with what was not told left out. The caller may keep
// it and write to it.
func (b *Board) Wiring() Wiring {
	w := Wiring{Count: b.count, NUMA: slices.Clone(b.numa)}
	for _, row := range b.pcie {
		w.PCIe = append(w.PCIe, slices.Clone(row))
	}
	if b.links != nil {
		for i := range b.count {
			row := make([]int, b.count)
			for j := range row {
				row[j] = int(b.links[i][j])
			}
			w.Links = append(w.Links, row)
		}
	}
	return w
}

// Links returns the number of NVLinks inside the set; 0 also if they are unknown.
func (b *Board) Links(set Mask) int {
	if b.links == nil {
		return 0
	}
	return int(b.links.sum(set & All(b.count)))
}

// NUMANodes returns how many NUMA nodes the set spans; 0 if that is unknown of any of its GPUs.
func (b *Board) NUMANodes(set Mask) int {
	if b.numa == nil || set&^All(b.count) != 0 {
		return 0
	}
	nodes := 0
	for i := range set.Each() {
		if b.numa[i] < 0 {
			return 0
		}
		seen := false
		for j := range set.Each() {
			if j >= i {
				break
			}
			seen = seen || b.numa[j] == b.numa[i]
		}
		if !seen {
			nodes++
		}
	}
	return nodes
}

// WorstPCIe returns the class of the worst path inside the set, SELF for a single GPU, unknown
// if that of any pair is.
func (b *Board) WorstPCIe(set Mask) PCIe {
	if b.pcie == nil || set == 0 || set&^All(b.count) != 0 {
		return UnknownPCIe
	}
	worst := SELF
	for i := range set.Each() {
		for j := range set.Each() {
			if j >= i {
				break
			}
			worst = min(worst, b.pcie[i][j])
		}
	}
	return worst
}
