package extender

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	schedulerconfig "k8s.io/kube-scheduler/config/v1"
	"sigs.k8s.io/yaml"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/config"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
	"github.com/reyisjones/gpu-orchestrator/internal/manager"
	"github.com/reyisjones/gpu-orchestrator/internal/state"
)

// The configuration that people copy names what is served, and asks only about what we decide.
func TestExampleOfKubeSchedulersConfiguration(t *testing.T) {
	data, err := config.FS.ReadFile("extender/kube-scheduler-config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var c schedulerconfig.KubeSchedulerConfiguration
	if err := yaml.UnmarshalStrict(data, &c); err != nil {
		t.Fatal(err)
	}
	if len(c.Extenders) != 1 || c.PercentageOfNodesToScore == nil || *c.PercentageOfNodesToScore != 100 {
		t.Fatalf("%d extenders, percentage %v", len(c.Extenders), c.PercentageOfNodesToScore)
	}
	x := c.Extenders[0]
	if got := []string{x.FilterVerb, x.PrioritizeVerb, x.PreemptVerb, x.BindVerb}; !slices.Equal(got, []string{verbFilter, verbPrioritize, verbPreempt, verbBind}) {
		t.Errorf("verbs are %v", got)
	}
	if !x.EnableHTTPS || x.TLSConfig == nil || x.TLSConfig.CAFile == "" || x.TLSConfig.CertFile == "" || !x.NodeCacheCapable || x.HTTPTimeout.Duration <= 0 {
		t.Errorf("it is %+v", x)
	}
	if len(x.ManagedResources) == 0 {
		t.Error("every pod is asked about")
	}
	var managed []string
	for _, r := range x.ManagedResources {
		managed = append(managed, r.Name)
	}
	for _, name := range []string{"nvidia.com/gpu", "nvidia.com/mig-1g.10gb", "nvidia.com/mig-3g.40gb", "amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe"} {
		if !slices.Contains(managed, name) {
			t.Errorf("nobody is asked about %s", name)
		}
	}
	slices.Sort(managed)
	if twice := len(managed) - len(slices.Compact(managed)); twice != 0 {
		t.Errorf("%d resources are there twice", twice)
	}
	for _, r := range x.ManagedResources {
		if !state.IsGPU(r.Name) || r.IgnoredByScheduler {
			t.Errorf("it manages %+v", r)
		}
	}
}

func TestConfigurationThatContradictsItself(t *testing.T) {
	c := DefaultConfig()
	c.Serving = Serving{Address: "127.0.0.1:8888", Insecure: true}
	if err := c.Validate(); err != nil {
		t.Errorf("plain on loopback: %v", err)
	}
	c.RequestMiB = 0
	if err := c.Validate(); err == nil {
		t.Error("no request is small enough, and nothing is said")
	}
}

// The kubelet has no certificate: it asks where none is needed, and what is served there.
func TestProbesHaveAPortOfTheirOwn(t *testing.T) {
	data, err := config.FS.ReadFile("extender/deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var d appsv1.Deployment
	if err := yaml.UnmarshalStrict(data, &d); err != nil {
		t.Fatal(err)
	}
	container := d.Spec.Template.Spec.Containers[0]
	ports := map[string]string{}
	for _, p := range container.Ports {
		ports[p.Name] = fmt.Sprintf(":%d", p.ContainerPort)
	}
	for _, probe := range []*corev1.Probe{container.LivenessProbe, container.ReadinessProbe} {
		if at := ports[probe.HTTPGet.Port.String()]; at != DefaultConfig().ProbeAddress || probe.HTTPGet.Scheme == corev1.URISchemeHTTPS {
			t.Errorf("%s is asked at %q", probe.HTTPGet.Path, at)
		}
	}
	if ports["https"] != DefaultConfig().Serving.Address || ports["metrics"] != DefaultConfig().MetricsAddress {
		t.Errorf("ports are %v", ports)
	}
	c := DefaultConfig()
	c.Serving, c.ProbeAddress = Serving{Address: "127.0.0.1:8888", Insecure: true}, "8081"
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "--health-probe-bind-address") {
		t.Errorf("no host and port: %v", err)
	}
}

// Workloads of another installation's class are not this one's to evict.
func TestTheClassIsTheInstallations(t *testing.T) {
	strategies, err := placement.NewRegistry(placement.Builtin()...)
	if err != nil {
		t.Fatal(err)
	}
	settings := manager.DefaultConfig()
	settings.ClassName = "ours"
	world := newState(&settings, strategies)
	world.SetNode(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "a"},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8"), "pods": resource.MustParse("110")},
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	})
	for _, class := range []string{"ours", "theirs"} {
		planned := &gpuv1alpha1.GPUWorkload{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: class, UID: types.UID(class)},
			Spec:       gpuv1alpha1.GPUWorkloadSpec{ModelName: "m", GPUCount: 1, Parallelism: 1, ClassName: class},
			Status:     gpuv1alpha1.GPUWorkloadStatus{Phase: gpuv1alpha1.PhaseScheduling, Placement: []gpuv1alpha1.NodePlacement{{Node: "a", Indexes: "0"}}},
		}
		world.SetWorkload(planned)
		(&promises{state: world, defaultImage: "example.com/default"}).keep(planned)
	}
	pods := world.Snapshot().Node("a").Pods
	if len(pods) != 2 {
		t.Fatalf("%d pods", len(pods))
	}
	for _, p := range pods {
		if p.Workload.Preemptible != (p.Workload.Name == "ns/ours") {
			t.Errorf("%s may be evicted: %v", p.Workload.Name, p.Workload.Preemptible)
		}
	}
}

// What the scheduler binary is started with decides what it is.
func TestAsked(t *testing.T) {
	for _, c := range []struct {
		args []string
		want bool
	}{
		{[]string{"--config=x", "--extender"}, true},
		{[]string{"--extender=true"}, true},
		{[]string{"--config", "x"}, false},
		{nil, false},
	} {
		if got := Asked(c.args); got != c.want {
			t.Errorf("%v: %v", c.args, got)
		}
	}
}
