package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// report is everything that a run of the benchmark found out, with what it was found out on.
type report struct {
	Started time.Time `json:"started"`
	Command string    `json:"command"`
	Commit  string    `json:"commit"`
	Machine string    `json:"machine"`
	Cores   int       `json:"cores"`
	Nodes   int       `json:"nodes"`
	Runs    []result  `json:"runs"`
}

// result is one run of one side: figures by name.
type result struct {
	Scenario string             `json:"scenario"`
	Side     string             `json:"side"`
	Pair     int                `json:"pair"`
	Load     float64            `json:"loadBefore"`
	Figures  map[string]float64 `json:"figures"`
}

// figure is how a figure is shown.
type figure struct {
	name, format string
}

func newReport(o *options) *report {
	return &report{
		Started: time.Now().UTC().Truncate(time.Second),
		Command: strings.Join(append([]string{"bench"}, os.Args[1:]...), " "),
		Commit:  commit(), Machine: machine(), Cores: runtime.NumCPU(), Nodes: o.nodes,
	}
}

func commit() string {
	out, err := exec.Command("git", "describe", "--always", "--dirty", "--exclude=*").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

// machine is what the processor calls itself.
func machine() string {
	file, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if key, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// load is the machine's load average of the last minute: what else ran.
func load() float64 {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	var one float64
	_, _ = fmt.Sscan(string(data), &one)
	return one
}

// add keeps a run and shows it at once.
func (r *report) add(one result, shown []figure) {
	r.Runs = append(r.Runs, one)
	var parts []string
	for _, f := range shown {
		if v, ok := one.Figures[f.name]; ok {
			parts = append(parts, f.name+" "+fmt.Sprintf(f.format, v))
		}
	}
	fmt.Printf("%s  %-18s run %d, load %.1f: %s\n", time.Now().Format(time.TimeOnly), one.Side, one.Pair, one.Load, strings.Join(parts, ", "))
}

// values are those of a figure in all runs of a side, by pair.
func (r *report) values(scenario, side, name string) []float64 {
	var all []float64
	for i := range r.Runs {
		if one := &r.Runs[i]; one.Scenario == scenario && one.Side == side {
			if v, ok := one.Figures[name]; ok {
				all = append(all, v)
			}
		}
	}
	return all
}

// table shows the median of each figure of each side, with its range, and the median of the
// ratios to the first side, run by run.
func (r *report) table(scenario string, sides []side, shown []figure) {
	w := tabwriter.NewWriter(os.Stdout, 2, 0, 2, ' ', 0)
	header := []string{scenario}
	for i, s := range sides {
		header = append(header, s.name)
		if i > 0 {
			header = append(header, s.name+"/"+sides[0].name)
		}
	}
	fmt.Fprintf(w, "\n%s\n", strings.Join(header, "\t"))
	for _, f := range shown {
		row := []string{f.name}
		first := r.values(scenario, sides[0].name, f.name)
		for i, s := range sides {
			mine := r.values(scenario, s.name, f.name)
			row = append(row, spread(mine, f.format))
			if i > 0 {
				row = append(row, spread(ratios(mine, first), "%.2f"))
			}
		}
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	_ = w.Flush()
}

// spread is the median of values with their range: "123 (110-140)".
func spread(values []float64, format string) string {
	switch len(values) {
	case 0:
		return "-"
	case 1:
		return fmt.Sprintf(format, values[0])
	}
	return fmt.Sprintf(format+" ("+format+"-"+format+")", median(values), slices.Min(values), slices.Max(values))
}

// ratios divides pair by pair; pairs whose second is 0 have none.
func ratios(values, by []float64) []float64 {
	var all []float64
	for i := range min(len(values), len(by)) {
		if by[i] != 0 {
			all = append(all, values[i]/by[i])
		}
	}
	return all
}

// median is the middle value, of an even number the mean of the middle two.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// quantile is the smallest value that at least the share q of all values are not above.
func quantile(values []time.Duration, q float64) time.Duration {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	at := int(q*float64(len(sorted))+0.999999) - 1
	return sorted[min(max(at, 0), len(sorted)-1)]
}

// write keeps the report as JSON.
func (r *report) write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making the folder for results: %w", err)
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the results: %w", err)
	}
	path := filepath.Join(dir, r.Started.Format("20060102-150405")+".json")
	if err := os.WriteFile(path, append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("writing the results: %w", err)
	}
	fmt.Printf("\n%s, %s, %d cores, %d nodes; kept in %s\n", r.Commit, r.Machine, r.Cores, r.Nodes, path)
	return nil
}
