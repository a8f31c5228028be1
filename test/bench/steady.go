package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"

	"k8s.io/utils/ptr"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

func steadyFigures() []figure {
	return []figure{
		{"pods", "%.0f"}, {"RSS MB", "%.0f"}, {"peak RSS MB", "%.0f"}, {"heap in use MB", "%.0f"},
		{"quiet cores", "%.4f"}, {"quiet requests/s", "%.2f"}, {"quiet kB/s", "%.1f"},
		{"churn workloads/s", "%.1f"}, {"churn cores", "%.3f"}, {"churn requests/s", "%.1f"}, {"churn kB/s", "%.1f"},
		{"RSS MB after churn", "%.0f"}, {"scrape ms", "%.2f"},
	}
}

// managerPorts are on the loopback interface, far from those that the system hands out.
const metricsAddress, healthAddress = "127.0.0.1:18080", "127.0.0.1:18081"

// runSteady measures what the manager needs on a cluster that is nearly full: while nothing
// happens, and while small workloads come and go.
func runSteady(ctx context.Context, o *options, _ []side, r *report) error {
	one := result{Scenario: "steady", Side: "manager", Load: load()}
	bare := side{name: "manager", args: []string{"--no-manager"}}
	err := withSandbox(ctx, o, bare, func(ctx context.Context, c *sandbox) error {
		var err error
		one.Figures, err = c.steady(ctx, o)
		return err
	})
	if err != nil {
		return err
	}
	r.add(one, steadyFigures())
	r.table("steady", []side{bare}, steadyFigures())
	return nil
}

func (c *sandbox) steady(ctx context.Context, o *options) (map[string]float64, error) {
	quiet, churn := 40*time.Second, 30*time.Second
	if o.quick {
		quiet, churn = 5*time.Second, 5*time.Second
	}
	n := o.nodes * 8000 / 1024
	if err := c.settled(ctx, n); err != nil {
		return nil, err
	}
	api, err := url.Parse(c.config.Host)
	if err != nil {
		return nil, err
	}
	p, err := startProxy(ctx, api.Host)
	if err != nil {
		return nil, err
	}
	m, err := c.startManager(o.manager, p)
	if err != nil {
		return nil, err
	}
	figures := map[string]float64{"pods": float64(n)}
	err = m.measure(ctx, c, figures, quiet, churn)
	return figures, errors.Join(err, m.stop())
}

// settled fills the cluster with running pods, eight a node with a GPU each, which nobody has to
// bind, and waits until the simulated kubelets have nothing more to say.
func (c *sandbox) settled(ctx context.Context, n int) error {
	var nodes corev1.NodeList
	if err := c.List(ctx, &nodes); err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(creators)
	for i := range n {
		group.Go(func() error {
			p := pod(unit{name: fmt.Sprintf("running-%05d", i), pods: 1, gpus: 1}, 0)
			p.Spec.NodeName = nodes.Items[i/gpusPerNode].Name
			return c.Create(inner, p)
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("creating running pods: %w", err)
	}
	err := wait.PollUntilContextTimeout(ctx, 2*time.Second, 5*time.Minute, true, func(ctx context.Context) (bool, error) {
		left, err := c.meta.Resource(pods()).Namespace(namespace).List(ctx, metav1.ListOptions{FieldSelector: "status.phase!=Running", ResourceVersion: "0"})
		return err == nil && len(left.Items) == 0, err
	})
	if err != nil {
		return fmt.Errorf("waiting for pods to run: %w", err)
	}
	return nil
}

// manager is the product's manager, run beside the sandbox so that its traffic can be counted.
type manager struct {
	process *exec.Cmd
	proxy   *proxy
	ended   <-chan struct{}
	result  error
}

func (c *sandbox) startManager(binary string, p *proxy) (*manager, error) {
	config, err := clientcmd.LoadFromFile(filepath.Join(c.dir, "config", "manager.kubeconfig"))
	if err != nil {
		return nil, fmt.Errorf("reading the manager's kubeconfig: %w", err)
	}
	for _, cluster := range config.Clusters {
		cluster.Server = "https://" + p.address()
	}
	kubeconfig := filepath.Join(c.dir, "counted.kubeconfig")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		return nil, fmt.Errorf("writing the manager's kubeconfig: %w", err)
	}
	log, err := os.Create(filepath.Join(c.dir, "logs", "manager.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	m := &manager{proxy: p, process: exec.Command(binary, "--kubeconfig="+kubeconfig,
		"--config="+filepath.Join(c.dir, "config", "manager.yaml"), "--leader-elect", "--leader-election-namespace=gpu-orchestrator-system",
		"--metrics-bind-address="+metricsAddress, "--health-probe-bind-address="+healthAddress)}
	m.process.Stdout, m.process.Stderr = log, log
	if m.ended, err = launch(m.process, &m.result); err != nil {
		return nil, fmt.Errorf("starting the manager: %w", err)
	}
	return m, nil
}

func (m *manager) stop() error {
	_ = m.process.Process.Signal(syscall.SIGTERM)
	<-m.ended
	if m.result != nil {
		return fmt.Errorf("ending the manager: %w", m.result)
	}
	return nil
}

func (m *manager) measure(ctx context.Context, c *sandbox, figures map[string]float64, quiet, churn time.Duration) error {
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		values, _, err := m.scrape(ctx)
		return err == nil && values["topology_idle_gpus"] > 0, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the manager to know the cluster: %w", err)
	}
	// What it took to read the cluster is over when the garbage of it is collected.
	if err := pause(ctx, min(quiet, 20*time.Second)); err != nil {
		return err
	}
	if err := m.during(ctx, figures, "quiet", func() error { return pause(ctx, quiet) }); err != nil {
		return err
	}
	memory, err := m.memory()
	if err != nil {
		return err
	}
	values, took, err := m.scrape(ctx)
	if err != nil {
		return err
	}
	figures["RSS MB"], figures["peak RSS MB"] = memory["VmRSS"]/1000, memory["VmHWM"]/1000
	figures["heap in use MB"], figures["scrape ms"] = values["go_memstats_heap_inuse_bytes"]/1e6, float64(took.Microseconds())/1000
	const perSecond = 2
	if err := m.during(ctx, figures, "churn", func() error { return c.churn(ctx, perSecond, churn) }); err != nil {
		return err
	}
	figures["churn workloads/s"] = perSecond
	memory, err = m.memory()
	figures["RSS MB after churn"] = memory["VmRSS"] / 1000
	return err
}

// during measures the manager's processor time and traffic while something goes on.
func (m *manager) during(ctx context.Context, figures map[string]float64, name string, do func() error) error {
	before, _, err := m.scrape(ctx)
	if err != nil {
		return err
	}
	bytes, start := m.proxy.sent.Load()+m.proxy.received.Load(), time.Now()
	if err := do(); err != nil {
		return err
	}
	took := time.Since(start).Seconds()
	bytes = m.proxy.sent.Load() + m.proxy.received.Load() - bytes
	after, _, err := m.scrape(ctx)
	if err != nil {
		return err
	}
	figures[name+" cores"] = (after["process_cpu_seconds_total"] - before["process_cpu_seconds_total"]) / took
	figures[name+" requests/s"] = (after["rest_client_requests_total"] - before["rest_client_requests_total"]) / took
	figures[name+" kB/s"] = float64(bytes) / 1000 / took
	return nil
}

// churn has workloads of one GPU come and, after a second, go.
func (c *sandbox) churn(ctx context.Context, perSecond int, d time.Duration) error {
	tick := time.NewTicker(time.Second / time.Duration(perSecond))
	defer tick.Stop()
	for i := range int(d.Seconds()) * perSecond {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
		for _, object := range workload(unit{name: fmt.Sprintf("churn-%05d", i), pods: 1, gpus: 1}) {
			w, ok := object.(*gpuv1alpha1.GPUWorkload)
			if !ok {
				continue
			}
			w.Spec.Template.Annotations["sandbox.gpu.warp.dev/run-for"] = "1s"
			w.Spec.TTLSecondsAfterFinished = ptr.To[int32](1)
			if err := c.Create(ctx, w); err != nil {
				return fmt.Errorf("creating workload %s: %w", w.Name, err)
			}
		}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// memory reads what the kernel says of the process, in kB.
func (m *manager) memory() (map[string]float64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.process.Process.Pid))
	if err != nil {
		return nil, fmt.Errorf("reading the manager's memory: %w", err)
	}
	values := map[string]float64{}
	for line := range strings.Lines(string(data)) {
		var kB float64
		if key, value, ok := strings.Cut(line, ":"); ok {
			if _, err := fmt.Sscan(value, &kB); err == nil {
				values[key] = kB * 1.024
			}
		}
	}
	return values, nil
}

// scrape reads the manager's metrics, summed over their labels, and says how long that took.
func (m *manager) scrape(ctx context.Context) (map[string]float64, time.Duration, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+metricsAddress+"/metrics", http.NoBody)
	if err != nil {
		return nil, 0, err
	}
	start := time.Now()
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, 0, fmt.Errorf("scraping the manager: %w", err)
	}
	defer response.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		return nil, 0, fmt.Errorf("reading the manager's metrics: %w", err)
	}
	values := map[string]float64{}
	for name, family := range families {
		for _, one := range family.GetMetric() {
			switch family.GetType() {
			case dto.MetricType_COUNTER:
				values[name] += one.GetCounter().GetValue()
			case dto.MetricType_GAUGE:
				values[name] += one.GetGauge().GetValue()
			}
		}
	}
	return values, time.Since(start), nil
}
