package packing

import (
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/reyisjones/gpu-orchestrator/internal/sim/trace"
)

// The strategy that is held against the best of the published policies.
const (
	ours   = "fragmentationAware"
	theirs = "fgd"
)

// near is how far from a published mean ours may be, in standard deviations of its seeds, and
// sameDigit what the rounding of what was published can make of no difference at all.
const (
	near      = 2
	sameDigit = 0.005
)

// Comparison holds results against published ones.
type Comparison struct {
	// Reproduced are the published policies that were played again.
	Reproduced []Reproduction `json:"reproduced"`
	// Margins are what fragmentationAware leaves idle against what FGD was published to, and
	// Average is their mean.
	Margins []Margin `json:"margins"`
	Average float64  `json:"average"`
	// Missed counts the policies that are not near what was published, Worse the workloads on
	// which fragmentationAware leaves more idle than FGD.
	Missed int `json:"missed"`
	Worse  int `json:"worse"`
}

// Reproduction is a published policy on a workload, in percent of the GPUs that stay idle.
type Reproduction struct {
	Workload  string  `json:"workload"`
	Policy    string  `json:"policy"`
	Published Spread  `json:"published"`
	Found     float64 `json:"found"`
	// Near says that the means differ by two standard deviations at most.
	Near bool `json:"near"`
}

// Margin is how many percent of the GPUs fragmentationAware has in use more than FGD had.
type Margin struct {
	Workload  string  `json:"workload"`
	Published float64 `json:"published"`
	Found     float64 `json:"found"`
	Margin    float64 `json:"margin"`
}

// Reference is published results: how much stays idle, by workload, policy and column.
type Reference struct {
	file  string
	known map[referenceKey]Spread
}

type referenceKey struct {
	workload, label string
	column          int64
}

// ReadReference reads the digest of published results: columns metric, workload, policy,
// arrive_pct, mean and sd, of which the rows of metric allo count. The error is a
// problem.Problems where the file is wrong.
func ReadReference(file string, in io.Reader) (*Reference, error) {
	rows := trace.NewRows(file, in, "metric", "workload", "policy", "arrive_pct", "mean", "sd")
	r := &Reference{file: file, known: map[referenceKey]Spread{}}
	number := func(name string) float64 {
		v, err := strconv.ParseFloat(rows.Text(name), 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			rows.Bad(name, fmt.Sprintf("is %q; expected a number", rows.Text(name)))
		}
		return v
	}
	for rows.Next() {
		at, mean, sd := rows.Int("arrive_pct", 0, 100*maxTune), number("mean"), number("sd")
		if rows.Text("metric") == "allo" {
			r.known[referenceKey{WorkloadName(rows.Text("workload")), rows.Text("policy"), at}] = Spread{Mean: 100 - mean, SD: sd}
		}
	}
	return r, rows.Err()
}

// of returns what was published of a policy on a workload.
func (r *Reference) of(workload string, p policy, column int) (Spread, bool) {
	s, ok := r.known[referenceKey{workload, p.label, int64(column)}]
	return s, ok && p.label != ""
}

// covers returns an error if nothing of what is to be played was published.
func (r *Reference) covers(e *Experiment) error {
	for _, w := range e.workloads {
		for _, p := range e.policies {
			if p.name == ours {
				p = named(theirs)
			}
			if _, ok := r.of(w.Name, p, e.judged()); ok {
				return nil
			}
		}
	}
	return trace.Problem(r.file, fmt.Sprintf("has nothing at %d %% for what is to be played; expected rows of metric allo for one of the workloads", e.judged()))
}

// compare holds results against published ones. What was played and not published, and what was
// published and not played, is left out.
func (r *Reference) compare(found *Results) *Comparison {
	c := &Comparison{Reproduced: []Reproduction{}, Margins: []Margin{}}
	for _, w := range found.Workloads {
		for _, s := range found.of(w.Name) {
			was, ok := r.of(w.Name, named(s.Policy), found.Judged)
			if !ok {
				continue
			}
			one := Reproduction{Workload: w.Name, Policy: s.Policy, Published: was, Found: s.Unallocated.Mean}
			if one.Near = math.Abs(one.Found-was.Mean) <= near*was.SD+sameDigit; !one.Near {
				c.Missed++
			}
			c.Reproduced = append(c.Reproduced, one)
		}
		s, played := found.summary(w.Name, ours)
		was, is := r.of(w.Name, named(theirs), found.Judged)
		if !played || !is {
			continue
		}
		m := Margin{Workload: w.Name, Published: was.Mean, Found: s.Unallocated.Mean, Margin: was.Mean - s.Unallocated.Mean}
		if m.Margin < 0 {
			c.Worse++
		}
		c.Margins = append(c.Margins, m)
	}
	for _, m := range c.Margins {
		c.Average += m.Margin / float64(len(c.Margins))
	}
	return c
}
