package packing

import "math"

// Results is what an experiment found.
type Results struct {
	Nodes int `json:"nodes"`
	GPUs  int `json:"gpus"`
	// Tune is what the pods asked for in the end, as a multiple of the GPUs; Judged and End are
	// the columns that are summed up, the second at that end.
	Tune      float64        `json:"tune"`
	Judged    int            `json:"judged"`
	End       int            `json:"end"`
	Seeds     []int64        `json:"seeds"`
	Workloads []WorkloadSize `json:"workloads"`
	Summary   []Summary      `json:"summary"`
	Published *Comparison    `json:"published,omitempty"`
	Runs      []*Run         `json:"runs"`
}

// WorkloadSize is how large the list of a workload is.
type WorkloadSize struct {
	Name  string `json:"name"`
	Pods  int    `json:"pods"`
	Kinds int    `json:"kinds"`
	// Hopeless is how many pods fit no node, even if nothing else runs.
	Hopeless int `json:"hopeless,omitempty"`
}

// Summary is what the seeds of a workload and a policy have in common.
type Summary struct {
	Workload string `json:"workload"`
	Policy   string `json:"policy"`
	// Unallocated and Fragmentation are percentages of all GPUs at the column Judged, and
	// UnallocatedAtEnd at the column End.
	Unallocated      Spread `json:"unallocated"`
	UnallocatedAtEnd Spread `json:"unallocatedAtEnd"`
	Fragmentation    Spread `json:"fragmentation"`
	// Refused is how many pods of a run found no room.
	Refused Spread `json:"refused"`
}

// Spread is a mean and the standard deviation of the sample; 0 where there is one value only.
type Spread struct {
	Mean float64 `json:"mean"`
	SD   float64 `json:"sd"`
}

func spread(values []float64) Spread {
	var s Spread
	for _, v := range values {
		s.Mean += v / float64(len(values))
	}
	if len(values) < 2 {
		return s
	}
	for _, v := range values {
		s.SD += (v - s.Mean) * (v - s.Mean)
	}
	s.SD = math.Sqrt(s.SD / float64(len(values)-1))
	return s
}

// summarise fills in the Summary. Runs that differ only in their seed are next to each other.
func (r *Results) summarise() {
	each := len(r.Seeds)
	for i := 0; i < len(r.Runs); i += each {
		runs := r.Runs[i : i+each]
		of := func(value func(*Run) float64) Spread {
			var values []float64
			for _, run := range runs {
				values = append(values, value(run))
			}
			return spread(values)
		}
		r.Summary = append(r.Summary, Summary{
			Workload:         runs[0].Workload,
			Policy:           runs[0].Policy,
			Unallocated:      of(func(run *Run) float64 { return run.Columns[r.Judged].Unallocated }),
			UnallocatedAtEnd: of(func(run *Run) float64 { return run.Columns[r.End].Unallocated }),
			Fragmentation:    of(func(run *Run) float64 { return run.Columns[r.Judged].Fragmentation }),
			Refused:          of(func(run *Run) float64 { return float64(run.Refused) }),
		})
	}
}

// of returns what was found on a workload, policy by policy.
func (r *Results) of(workload string) []Summary {
	var found []Summary
	for _, s := range r.Summary {
		if s.Workload == workload {
			found = append(found, s)
		}
	}
	return found
}

// summary returns what was found for a policy on a workload.
func (r *Results) summary(workload, policy string) (Summary, bool) {
	for _, s := range r.of(workload) {
		if s.Policy == policy {
			return s, true
		}
	}
	return Summary{}, false
}
