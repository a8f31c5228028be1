package replay

import (
	"slices"
	"time"

	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

// Estimates says what a policy is told of run times.
type Estimates string

// What a policy may be told.
const (
	// Oracle tells the run time itself.
	Oracle Estimates = "oracle"
	// History tells what half, and what nine in ten, of the jobs of the same size took that ended
	// before: what anybody can know who writes down what ran.
	History Estimates = "p50"
	// NoEstimates tells nothing.
	NoEstimates Estimates = "none"
)

// EstimateKinds are the values of Estimates.
func EstimateKinds() []string {
	return []string{string(Oracle), string(History), string(NoEstimates)}
}

// remembered is how many ended jobs of a size count, enough that fewer say too little.
const (
	remembered = 200
	enough     = 5
)

// history keeps the run times of the last jobs of each size.
type history struct {
	bySize map[int]*window
	all    window
}

// window is the last run times, in the order of their ends and sorted.
type window struct {
	last   []time.Duration
	sorted []time.Duration
}

func (w *window) add(d time.Duration) {
	if len(w.last) == remembered {
		i, _ := slices.BinarySearch(w.sorted, w.last[0])
		w.sorted = slices.Delete(w.sorted, i, i+1)
		w.last = append(w.last[:0], w.last[1:]...)
	}
	w.last = append(w.last, d)
	i, _ := slices.BinarySearch(w.sorted, d)
	w.sorted = slices.Insert(w.sorted, i, d)
}

func (h *history) add(gpus int, d time.Duration) {
	if h.bySize == nil {
		h.bySize = map[int]*window{}
	}
	if h.bySize[gpus] == nil {
		h.bySize[gpus] = &window{}
	}
	h.bySize[gpus].add(d)
	h.all.add(d)
}

// estimate is of jobs of the size, or of all where too few of it ended; zero if hardly any did.
func (h *history) estimate(gpus int) placement.Estimate {
	w := h.bySize[gpus]
	if w == nil || len(w.last) < enough {
		w = &h.all
	}
	if len(w.last) < enough {
		return placement.Estimate{}
	}
	// Zero would say that nothing is known.
	return placement.Estimate{P50: max(w.quantile(0.5), 1), P90: max(w.quantile(0.9), 1)}
}

func (w *window) quantile(q float64) time.Duration {
	return w.sorted[rank(q, len(w.sorted))]
}

// rank is the index of a quantile by the nearest-rank method: the smallest value that at least q
// of all do not exceed (Hyndman and Fan 1996, definition 1).
func rank(q float64, n int) int {
	i := int(q * float64(n))
	if float64(i) == q*float64(n) {
		i--
	}
	return min(max(i, 0), n-1)
}
