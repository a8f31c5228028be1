package importing

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/reyisjones/gpu-orchestrator/internal/sim/trace"
)

// Found is what was found in users' own data.
type Found struct {
	Nodes []trace.Node
	// Jobs have times of submission since 1970, until Settle.
	Jobs []trace.Job
	Pods []trace.Pod

	// Left are those that were left out, Changed those that are there otherwise than they were.
	Left, Changed Notes
}

// Settle puts the jobs in the order of their submission, counts time from the first, and gives
// jobs that share a name names of their own.
func (f *Found) Settle() {
	slices.SortStableFunc(f.Jobs, func(a, b trace.Job) int {
		return cmp.Or(cmp.Compare(a.Submit, b.Submit), cmp.Compare(a.ID, b.ID))
	})
	if len(f.Jobs) == 0 {
		return
	}
	first := f.Jobs[0].Submit
	taken := make(map[string]bool, len(f.Jobs))
	for i := range f.Jobs {
		f.Jobs[i].Submit -= first
		taken[f.Jobs[i].ID] = true
	}
	seen := make(map[string]int, len(f.Jobs))
	for i := range f.Jobs {
		name := f.Jobs[i].ID
		if seen[name]++; seen[name] == 1 {
			continue
		}
		for n := seen[name]; ; n++ {
			if own := fmt.Sprintf("%s#%d", name, n); !taken[own] {
				f.Jobs[i].ID, taken[own], seen[name] = own, true, n
				break
			}
		}
	}
}

// GPUHours is the work of all jobs.
func (f *Found) GPUHours() float64 {
	hours := 0.0
	for _, j := range f.Jobs {
		hours += j.Duration.Hours() * float64(j.GPUs)
	}
	return hours
}

// Span is the time from the first submission to the last. It holds after Settle.
func (f *Found) Span() time.Duration {
	if len(f.Jobs) == 0 {
		return 0
	}
	return f.Jobs[len(f.Jobs)-1].Submit
}

// Notes count what is to be said of an import, in the order in which it was first met.
type Notes []Note

// Note is one thing to be said, and of how many.
type Note struct {
	Count int
	// Text goes on after the count: "jobs that asked for no GPU".
	Text string
}

// Add counts one more.
func (n *Notes) Add(text string) { n.AddMany(1, text) }

// AddMany counts several more; 0 says nothing.
func (n *Notes) AddMany(count int, text string) {
	if count == 0 {
		return
	}
	for i := range *n {
		if (*n)[i].Text == text {
			(*n)[i].Count += count
			return
		}
	}
	*n = append(*n, Note{count, text})
}
