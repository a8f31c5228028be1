package trace

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// WriteNodes writes nodes.csv. What ReadNodes accepts is read back as it was.
func WriteNodes(out io.Writer, nodes []Node) error {
	w := csv.NewWriter(out)
	header(w, "name", "cpu_milli", "memory_mib", "gpu", "model", "spine", "leaf")
	for _, n := range nodes {
		row(w, n.Name, integer(n.CPUMilli), integer(n.MemoryMiB), strconv.Itoa(n.GPUs), n.Model, n.Spine, n.Leaf)
	}
	return ended(w, "nodes")
}

// WriteJobs writes jobs.csv, in the order of its own layout. Times are written to the
// microsecond, as they are read; lines are not written, since the new file has its own.
func WriteJobs(out io.Writer, jobs []Job) error {
	w := csv.NewWriter(out)
	header(w, "job_id", "submission_time", "duration", "num_gpu", "num_pods", "gpu_model", "queue", "priority")
	for _, j := range jobs {
		pods := ""
		if j.Pods > 0 {
			pods = strconv.Itoa(j.Pods)
		}
		row(w, j.ID, seconds(j.Submit), seconds(j.Duration), strconv.Itoa(j.GPUs), pods, j.Model, j.Queue, integer(int64(j.Priority)))
	}
	return ended(w, "jobs")
}

// WritePods writes pods.csv.
func WritePods(out io.Writer, pods []Pod) error {
	w := csv.NewWriter(out)
	header(w, "name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec")
	for _, p := range pods {
		row(w, p.Name, integer(p.CPUMilli), integer(p.MemoryMiB), strconv.Itoa(p.GPUs), strconv.Itoa(p.Milli), strings.Join(p.Models, "|"))
	}
	return ended(w, "pods")
}

func header(w *csv.Writer, columns ...string) { row(w, columns...) }

// row leaves errors to ended: a csv.Writer remembers the first.
func row(w *csv.Writer, values ...string) { _ = w.Write(values) }

func ended(w *csv.Writer, what string) error {
	w.Flush()
	if err := w.Error(); err != nil {
		return fmt.Errorf("writing %s: %w", what, err)
	}
	return nil
}

func integer(v int64) string { return strconv.FormatInt(v, 10) }

// seconds writes a time without the rounding of a binary fraction: 10.5, not 10.499999.
func seconds(d time.Duration) string {
	micros := d.Round(time.Microsecond).Microseconds()
	text := integer(micros / 1e6)
	if part := micros % 1e6; part != 0 {
		text += strings.TrimRight(fmt.Sprintf(".%06d", part), "0")
	}
	return text
}
