package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/kubernetes"
)

// ticksPerSecond is the kernel's unit of processor time, on every platform that Go runs on.
const ticksPerSecond = 100

// usage is what a cluster has used so far: processor seconds by process, and requests that the
// API server has answered, but for watches and leases.
type usage struct {
	seconds  map[string]float64
	requests float64
}

func (c *sandbox) usage(ctx context.Context) (usage, error) {
	u := usage{seconds: map[string]float64{}}
	for _, p := range c.state.Processes {
		var err error
		if u.seconds[p.Name], err = processorSeconds(p.PID); err != nil {
			return u, err
		}
	}
	client, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return u, err
	}
	text, err := client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return u, fmt.Errorf("scraping the API server: %w", err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return u, fmt.Errorf("reading the API server's metrics: %w", err)
	}
	for _, m := range families["apiserver_request_total"].GetMetric() {
		if counts(m) {
			u.requests += m.GetCounter().GetValue()
		}
	}
	return u, nil
}

func counts(m *dto.Metric) bool {
	for _, l := range m.GetLabel() {
		switch l.GetName() + "=" + l.GetValue() {
		case "verb=WATCH", "resource=leases":
			return false
		}
	}
	return true
}

// processorSeconds reads how long a process has computed, in user and in system mode.
func processorSeconds(pid int) (float64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("reading the processor time of process %d: %w", pid, err)
	}
	// The name, in parentheses, may hold anything; fields are counted from its end.
	text := string(data)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	const user, system = 11, 12
	if len(fields) <= system {
		return 0, fmt.Errorf("reading the processor time of process %d: %q", pid, text)
	}
	var u, s float64
	if _, err := fmt.Sscan(fields[user]+" "+fields[system], &u, &s); err != nil {
		return 0, fmt.Errorf("reading the processor time of process %d: %w", pid, err)
	}
	return (u + s) / ticksPerSecond, nil
}

// since adds what was used since, for each of n things, to the figures.
func (u usage) since(before usage, n float64, each string, figures map[string]float64) {
	total := 0.0
	for name, seconds := range u.seconds {
		spent := 1000 * (seconds - before.seconds[name]) / n
		figures["cpu ms/"+each+" "+name] = spent
		total += spent
	}
	figures["cpu ms/"+each] = total
	figures["API requests/"+each] = (u.requests - before.requests) / n
}
