package fabric

import (
	"fmt"
	"io"
	"strings"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/collective"
	"github.com/reyisjones/gpu-orchestrator/internal/sim/trace"
)

// Cluster is a cluster on which nothing runs.
type Cluster struct {
	// Levels are spine, leaf and host, or host alone where nothing is known of the network.
	Levels []cluster.Level
	// Nodes have cpu in thousandths of a core, memory in bytes, pods, and nvidia.com/gpu.
	Nodes     []*cluster.Node
	Resources *cluster.Resources
	// Uplinks are those whose capacity is known.
	Uplinks []cluster.Uplink
	// Fabric is what core/collective asks of machines and network.
	Fabric collective.Fabric
	// Notes say what was understood, assumed and left out, a sentence each.
	Notes []string
}

// Snapshot returns the cluster as the engine sees it, with the uplinks.
func (c *Cluster) Snapshot() (*cluster.Snapshot, error) {
	s := cluster.NewSnapshot(1, c.Levels, c.Resources, c.Nodes)
	if len(c.Uplinks) == 0 {
		return s, nil
	}
	s, err := s.WithUplinks(c.Uplinks)
	if err != nil {
		return nil, fmt.Errorf("giving the uplinks their capacities: %w", err)
	}
	return s, nil
}

// GPUs returns how many there are.
func (c *Cluster) GPUs() (sum int64) {
	for _, n := range c.Nodes {
		sum += n.Allocatable.At(c.Resources.Index(gpuResource))
	}
	return sum
}

// Load makes the cluster that source names: a shape, as Shape reads it, if it begins with
// fattree: or flat:; a list of nodes, as Nodes reads it, if it ends in .csv; and else the output of
// ibnetdiscover, as Discovered reads it. open opens a file. An @ and a model of GPU may follow the
// output of ibnetdiscover, which does not tell what is in its hosts: fabric.out@A100. A routing, which
// no file tells, may follow either: nodes.csv,routing=hashed or fabric.out@A100,routing=hashed.
func Load(source string, open func(file string) (io.ReadCloser, error)) (*Cluster, error) {
	if IsShape(source) {
		return Shape(source)
	}
	const option = ",routing="
	at := strings.LastIndex(source, option)
	if at <= strings.LastIndexAny(source, `/\`) {
		return load(source, open)
	}
	routing, err := routingOf(source[at+len(option):])
	if err != nil {
		return nil, fmt.Errorf("cluster %q: character %d: found %q; %w", source, at+len(option)+1, source[at+len(option):], err)
	}
	c, err := load(source[:at], open)
	if err != nil {
		return nil, err
	}
	c.Fabric.Routing = routing
	return c, nil
}

// load makes the cluster of a file.
func load(source string, open func(file string) (io.ReadCloser, error)) (*Cluster, error) {
	file, m := source, Machine{}
	if at := strings.LastIndexByte(source, '@'); at > strings.LastIndexAny(source, `/\`) && at < len(source)-1 {
		file, m.Model = source[:at], source[at+1:]
	}
	list := strings.HasSuffix(strings.ToLower(source), ".csv")
	if list {
		file = source
	}
	in, err := open(file)
	if err != nil {
		return nil, fmt.Errorf("opening the cluster: %w; expected a shape such as fattree:128x8, a list of nodes that ends in .csv, or a file with the output of ibnetdiscover", err)
	}
	defer in.Close()
	if !list {
		return Discovered(file, in, m)
	}
	nodes, err := trace.ReadNodes(file, in)
	if err != nil {
		return nil, err
	}
	return Nodes(file, nodes)
}
