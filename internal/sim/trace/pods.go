package trace

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// Pod is a row of pods.csv: what a pod asks of one node.
type Pod struct {
	Name                string
	CPUMilli, MemoryMiB int64
	// GPUs is the number of GPUs; Milli the thousandths of each that it wants: below 1000 only
	// with one GPU, 0 with none.
	GPUs, Milli int
	// Models are the GPU models it accepts, sorted; nil for any. Spec is the same as the file has
	// it, where a model may be named twice.
	Models []string
	Spec   string
}

// ReadPods reads pods.csv as the Alibaba 2023 traces have it: columns name, cpu_milli,
// memory_mib, num_gpu, gpu_milli and, where there is one, gpu_spec with | between models. A model
// that is not in models is a problem; nil knows none and asks for nothing.
func ReadPods(file string, in io.Reader, models map[string]bool) ([]Pod, error) {
	rows := NewRows(file, in, "name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
	var pods []Pod
	lines := map[string]int{}
	for rows.Next() {
		p := Pod{
			Name:      rows.Text("name"),
			CPUMilli:  rows.Int("cpu_milli", 0, math.MaxInt64),
			MemoryMiB: rows.Int("memory_mib", 0, math.MaxInt64>>20),
			GPUs:      int(rows.Int("num_gpu", 0, maxGPUs)),
			Milli:     int(rows.Int("gpu_milli", 0, 1000)),
			Models:    readModels(rows, models),
			Spec:      rows.Text("gpu_spec"),
		}
		switch first, twice := lines[p.Name]; {
		case p.Name == "":
			rows.Bad("name", "is empty; expected the name of the pod")
		case twice:
			rows.Bad("name", fmt.Sprintf("%q is also the pod of line %d; expected a name of its own", p.Name, first))
		}
		lines[p.Name] = rows.Line()
		switch {
		case p.GPUs == 0:
			p.Milli = 0
		case p.Milli == 0:
			rows.Bad("gpu_milli", fmt.Sprintf("is 0 with num_gpu %d; expected 1 to 1000 thousandths of each GPU", p.GPUs))
		case p.GPUs > 1 && p.Milli < 1000:
			rows.Bad("gpu_milli", fmt.Sprintf("is %d with num_gpu %d; expected 1000: parts of several GPUs cannot be asked for", p.Milli, p.GPUs))
		}
		pods = append(pods, p)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	return pods, nil
}

// readModels reads gpu_spec.
func readModels(rows *Rows, known map[string]bool) []string {
	text := rows.Text("gpu_spec")
	if text == "" {
		return nil
	}
	models := strings.Split(text, "|")
	for i, m := range models {
		models[i] = strings.TrimSpace(m)
		if known != nil && !known[models[i]] {
			rows.Bad("gpu_spec", fmt.Sprintf("%s is no GPU model of the nodes; expected one of %s", shown(models[i]), listed(known)))
		}
	}
	slices.Sort(models)
	return slices.Compact(models)
}
