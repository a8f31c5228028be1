package placement

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/gpu"
)

// slowFragmentation is the definition of fragmentation, GPU by GPU and kind by kind, in GPUs.
func slowFragmentation(n *cluster.Node, expected []Expected) float64 {
	var free []int // thousandths of each GPU
	if n.Board != nil {
		for i := range n.Board.Count() {
			free = append(free, n.FreeShare(i))
		}
	} else {
		free = slices.Repeat([]int{cluster.Full}, int(n.Free(gpuResource)))
	}
	idle := 0
	for _, f := range free {
		idle += f
	}
	fragmentation := 0.0
	var weights, gpus, cpu, memory float64
	for _, e := range expected {
		size := float64(e.GPUs*cluster.Full + e.Milli)
		if size == 0 {
			continue
		}
		weights += e.Weight
		gpus += e.Weight * size
		cpu += e.Weight * float64(e.Resources.At(cluster.CPU))
		memory += e.Weight * float64(e.Resources.At(cluster.Memory))
	}
	for _, e := range expected {
		if e.GPUs == 0 && e.Milli == 0 {
			continue
		}
		fits := e.Product == "" || slices.Contains(strings.Split(e.Product, "|"), n.GPU.Product)
		for i, want := range e.Resources {
			fits = fits && (i == gpuResource || want <= n.Free(i))
		}
		usable, able := 0, 0
		for _, f := range free {
			switch {
			case e.GPUs > 0 && f == cluster.Full:
				usable += f
				able++
			case e.GPUs == 0 && f >= e.Milli:
				usable += e.Milli
				able++
			}
		}
		if !fits || able < e.GPUs {
			usable = 0
		}
		fragmentation += e.Weight / weights / e.Supply * float64(idle-usable)
	}
	fed := float64(idle)
	if cpu > 0 {
		fed = min(fed, float64(n.Free(cluster.CPU))*gpus/cpu)
	}
	if memory > 0 {
		fed = min(fed, float64(n.Free(cluster.Memory))*gpus/memory)
	}
	return (fragmentation + float64(idle) - fed) / cluster.Full
}

// drawNode draws a node with up to 8 GPUs, of which some are in use, whole or in parts.
func drawNode(t *rapid.T) *cluster.Node {
	gpus := rapid.Int64Range(1, 8).Draw(t, "GPUs")
	n := nodeSpec{name: "n", gpus: gpus}.node()
	n.GPU.Product = rapid.SampledFrom([]string{"A", "B", "C"}).Draw(t, "product")
	n.Used = cluster.Vector{
		1000 * rapid.Int64Range(0, 64).Draw(t, "cores used"), rapid.Int64Range(0, 1024).Draw(t, "GiB used") << 30, 0, 0,
	}
	if rapid.Bool().Draw(t, "inside unknown") {
		n.Used[gpuResource] = rapid.Int64Range(0, gpus).Draw(t, "used")
		return n
	}
	n.Board = board(t, gpu.Wiring{Count: int(gpus)})
	n.Taken = gpu.Mask(rapid.Uint64().Draw(t, "taken")) & gpu.All(int(gpus))
	n.Shares = make([]int16, gpus)
	for i := range n.Shares {
		if n.Taken.Has(i) {
			n.Used[gpuResource]++
		} else if rapid.Bool().Draw(t, "shared") {
			n.Shares[i] = rapid.Int16Range(0, 20).Draw(t, "share") * 50
		}
	}
	return n
}

func drawMix(t *rapid.T) []Expected {
	expected := make([]Expected, rapid.IntRange(1, 6).Draw(t, "kinds"))
	for i := range expected {
		e := &expected[i]
		e.Resources = cluster.Vector{
			1000 * rapid.Int64Range(0, 8).Draw(t, "cores"), rapid.Int64Range(0, 64).Draw(t, "GiB") << 30,
			rapid.Int64Range(0, 2).Draw(t, "pods"), 99,
		}
		switch rapid.IntRange(0, 4).Draw(t, "size") {
		case 0:
		case 1, 2:
			e.GPUs = rapid.SampledFrom([]int{1, 2, 4, 8}).Draw(t, "whole")
		default:
			e.Milli = 50 * rapid.IntRange(1, 19).Draw(t, "thousandths")
		}
		e.Product = rapid.SampledFrom([]string{"", "", "A", "B|A"}).Draw(t, "for")
		e.Weight = float64(rapid.IntRange(1, 9).Draw(t, "weight"))
		e.Supply = rapid.SampledFrom([]float64{1, 0.5, 0.1}).Draw(t, "supply")
	}
	if rapid.Bool().Draw(t, "twice") {
		expected = slices.Insert(expected, 0, expected[0])
	}
	return expected
}

// checkFragmentation returns how what is given differs from the definition, "" if it does not.
func checkFragmentation(t *rapid.T, given func(*cluster.Node, []Expected) float64) string {
	n, expected := drawNode(t), drawMix(t)
	if !slices.ContainsFunc(expected, func(e Expected) bool { return e.GPUs+e.Milli > 0 }) {
		return ""
	}
	if got, want := given(n, expected), slowFragmentation(n, expected); math.Abs(got-want) > 1e-6 {
		return fmt.Sprintf("%v GPUs, by definition %v", got, want)
	}
	return ""
}

func fastFragmentation(n *cluster.Node, expected []Expected) float64 {
	_, unusable := Fragmentation(n, gpuResource, &Scoring{Mix: expected})
	return unusable
}

func TestFragmentationIsWhatItsDefinitionSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if problem := checkFragmentation(t, fastFragmentation); problem != "" {
			t.Fatal(problem)
		}
	})
}

// The property must be able to fail: each of these mistakes is found.
func TestFragmentationPropertyFindsMistakes(t *testing.T) {
	edited := func(edit func(*cluster.Node, *Expected)) func(*cluster.Node, []Expected) float64 {
		return func(n *cluster.Node, expected []Expected) float64 {
			expected = slices.Clone(expected)
			for i := range expected {
				edit(n, &expected[i])
			}
			return fastFragmentation(n, expected)
		}
	}
	for name, broken := range map[string]func(*cluster.Node, []Expected) float64{
		"forgets how scarce GPUs are":     edited(func(_ *cluster.Node, e *Expected) { e.Supply = 0 }),
		"puts any kind on any GPU":        edited(func(_ *cluster.Node, e *Expected) { e.Product = "" }),
		"forgets CPU and memory":          edited(func(_ *cluster.Node, e *Expected) { e.Resources = e.Resources[:0] }),
		"takes a share for a whole GPU":   edited(func(_ *cluster.Node, e *Expected) { e.GPUs, e.Milli = e.GPUs+e.Milli/500, 0 }),
		"counts all kinds the same":       edited(func(_ *cluster.Node, e *Expected) { e.Weight = 1 }),
		"asks for one GPU instead of two": edited(func(_ *cluster.Node, e *Expected) { e.GPUs = min(e.GPUs, 1) }),
	} {
		t.Run(name, func(t *testing.T) {
			found := false
			rapid.Check(t, func(t *rapid.T) { found = found || checkFragmentation(t, broken) != "" })
			if !found {
				t.Error("the property holds for a broken measure")
			}
		})
	}
}

// drawPod draws a pod that may fit the node: without GPUs, with whole ones, with a share.
func drawPod(t *rapid.T) Shape {
	p := ask(1, rapid.SampledFrom([]int64{0, 1, 2, 4}).Draw(t, "wanted")).Groups[0].Pod
	p.Resources[cluster.CPU] = 1000 * rapid.Int64Range(0, 16).Draw(t, "cores wanted")
	if p.GPUs == 0 {
		p.Milli = 50 * rapid.IntRange(0, 19).Draw(t, "share wanted")
	}
	return p
}

// checkGrowth compares the score of a drawn node with what happens when the pods are put there
// in fact. It returns the difference, "" if there is none.
func checkGrowth(t *rapid.T, score func(*Candidate) float64) string {
	n, shape := drawNode(t), drawPod(t)
	scoring := &Scoring{Mix: drawMix(t)}
	q := newNeed(&shape, cluster.NewResources("nvidia.com/gpu"))
	fits, _, _ := q.fits(n, Fits)
	if fits < 1 {
		return ""
	}
	placed := rapid.IntRange(0, int(fits)-1).Draw(t, "placed")
	c := &Candidate{Node: n, Pod: &q.Shape, Placed: placed, Scoring: scoring}
	c.FreeGPUs = n.Free(gpuResource) - int64(placed)*shape.GPUs
	with := n
	for range placed {
		with = withPod(with, &shape)
	}
	if n.Board != nil {
		c.Whole = with.WholeGPUs()
	}
	_, before := Fragmentation(with, gpuResource, scoring)
	idle, after := Fragmentation(withPod(with, &shape), gpuResource, scoring)
	if got, want := score(c), before-after-tidiness*idle; math.Abs(got-want) > 1e-6 {
		return fmt.Sprintf("scored %v, in fact %v", got, want)
	}
	return ""
}

// withPod puts a pod on the node as the engine and the device plugin would.
func withPod(n *cluster.Node, shape *Shape) *cluster.Node {
	p := &cluster.Pod{Use: shape.Resources}
	if n.Board != nil && shape.GPUs > 0 {
		p.GPUs, _ = n.Board.Best(n.WholeGPUs(), int(shape.GPUs), 0)
	}
	if n.Board != nil && shape.Milli > 0 {
		shares := make([]int, n.Board.Count())
		for i := range shares {
			shares[i] = n.FreeShare(i)
		}
		p.GPUs, p.Milli = gpu.MaskOf(chooseShare(shares, shape.Milli, false)), shape.Milli
	}
	return n.With(p)
}

func TestFragmentationAwareScoresWhatHappens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if problem := checkGrowth(t, FragmentationAware{}.Score); problem != "" {
			t.Fatal(problem)
		}
	})
}

// The property must be able to fail: each of these mistakes is found.
func TestGrowthPropertyFindsMistakes(t *testing.T) {
	edited := func(edit func(*Candidate)) func(*Candidate) float64 {
		return func(c *Candidate) float64 {
			copied := *c
			edit(&copied)
			return FragmentationAware{}.Score(&copied)
		}
	}
	for name, score := range map[string]func(*Candidate) float64{
		"forgets this plan's pods": edited(func(c *Candidate) { c.Placed = 0 }),
		"looks at the first kind":  edited(func(c *Candidate) { c.Scoring = &Scoring{Mix: c.Scoring.Mix[:1]} }),
		"forgets shared GPUs": edited(func(c *Candidate) {
			n := *c.Node
			n.Shares = nil
			c.Node = &n
		}),
		"forgets the CPU": edited(func(c *Candidate) {
			p := *c.Pod
			p.Resources = nil
			c.Pod = &p
		}),
	} {
		t.Run(name, func(t *testing.T) {
			found := false
			rapid.Check(t, func(t *rapid.T) { found = found || checkGrowth(t, score) != "" })
			if !found {
				t.Error("the property holds for a broken score")
			}
		})
	}
}
