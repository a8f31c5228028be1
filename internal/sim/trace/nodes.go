package trace

import (
	"fmt"
	"io"
	"math"

	"github.com/reyisjones/gpu-orchestrator/internal/problem"
)

// maxGPUs is how many GPUs a node has at most: what the engine's masks hold.
const maxGPUs = 64

// Node is a row of nodes.csv.
type Node struct {
	Name                string
	CPUMilli, MemoryMiB int64
	GPUs                int
	// Model is the product name of its GPUs, "" where the file does not tell.
	Model string
	// Spine and Leaf say where in the network it is, "" where the file does not tell.
	Spine, Leaf string
}

// ReadNodes reads nodes.csv: columns sn (or name), cpu_milli, memory_mib, gpu and, where known,
// model, spine and leaf. The error is a problem.Problems where the file is wrong.
func ReadNodes(file string, in io.Reader) ([]Node, error) {
	rows := NewRows(file, in, "sn|name", "cpu_milli", "memory_mib", "gpu")
	var nodes []Node
	lines := map[string]int{}
	for rows.Next() {
		n := Node{
			Name:      rows.Text("sn|name"),
			CPUMilli:  rows.Int("cpu_milli", 0, math.MaxInt64),
			MemoryMiB: rows.Int("memory_mib", 0, math.MaxInt64>>20),
			GPUs:      int(rows.Int("gpu", 0, maxGPUs)),
			Model:     rows.Text("model"),
			Spine:     rows.Text("spine"),
			Leaf:      rows.Text("leaf"),
		}
		if n.Name == "" {
			rows.Bad("sn|name", "is empty; expected the name of the node")
		} else if first, twice := lines[n.Name]; twice {
			rows.Bad("sn|name", fmt.Sprintf("%q is also the node of line %d; expected a name of its own", n.Name, first))
		}
		lines[n.Name] = rows.Line()
		nodes = append(nodes, n)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	return nodes, nil
}

// Models returns the GPU models of the nodes.
func Models(nodes []Node) map[string]bool {
	models := map[string]bool{}
	for _, n := range nodes {
		if n.GPUs > 0 && n.Model != "" {
			models[n.Model] = true
		}
	}
	return models
}

// Problem says of a file that something is wrong with it as a whole.
func Problem(file, text string) error {
	return problem.Problems{{File: file, Text: text}}
}
