package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

// Whatever takes a node for itself, every gang has room: else nobody could bind all of it, and
// pods a second would compare different things.
func TestMixedUnitsFitInAnyOrder(t *testing.T) {
	for _, nodes := range []int{64, 256, 1024} {
		units, again := mixedUnits(nodes, 1), mixedUnits(nodes, 1)
		taken, gpus, moved := 0, 0, false
		for i, u := range units {
			taken += u.pods
			gpus += u.pods * u.gpus
			if u != again[i] {
				t.Fatalf("%d nodes: two draws of one seed differ at %d", nodes, i)
			}
			moved = moved || u != mixedUnits(nodes, 2)[i]
		}
		if taken > nodes {
			t.Errorf("%d nodes: %d pods, each on a node of its own, do not fit", nodes, taken)
		}
		if share := float64(gpus) / float64(nodes*gpusPerNode); share < 0.6 || share > 0.7 {
			t.Errorf("%d nodes: %.2f of the GPUs are asked for", nodes, share)
		}
		if !moved {
			t.Errorf("%d nodes: two seeds draw one order", nodes)
		}
	}
}

func TestLeafUnitsAreThoseOfTheComparison(t *testing.T) {
	fill, gangs := leafUnits(1024)
	if len(fill) != 800 || podsOf(fill) != 800 || len(gangs) != 14 || podsOf(gangs) != 224 {
		t.Errorf("%d pods, then %d gangs of %d pods in all", len(fill), len(gangs), podsOf(gangs))
	}
}

// Every side runs the same pods.
func TestSidesAskForTheSame(t *testing.T) {
	u := unit{name: "u", pods: 4, gpus: 2, required: "leaf"}
	for _, s := range allSides() {
		n := 0
		for _, object := range s.objects(u) {
			switch o := object.(type) {
			case *corev1.Pod:
				n++
				checkSpec(t, s.name, &o.Spec)
				if unitOf(o.Labels) != "u" {
					t.Errorf("%s: a pod of %q", s.name, unitOf(o.Labels))
				}
			case *gpuv1alpha1.GPUWorkload:
				n += int(o.Spec.Parallelism)
				checkSpec(t, s.name, &o.Spec.Template.Spec)
				if o.Spec.GPUCount != 2 || o.Spec.Topology.Required != "leaf" {
					t.Errorf("%s: %+v", s.name, o.Spec)
				}
			case *schedulingv1alpha2.PodGroup:
				if o.Spec.SchedulingPolicy.Gang.MinCount != 4 || o.Spec.SchedulingConstraints.Topology[0].Key != "gpu.warp.dev/leaf" {
					t.Errorf("%s: %+v", s.name, o.Spec)
				}
			}
		}
		if n != 4 {
			t.Errorf("%s: %d pods of 4", s.name, n)
		}
	}
}

func checkSpec(t *testing.T, side string, spec *corev1.PodSpec) {
	t.Helper()
	got := spec.Containers[0].Resources
	if gpus := got.Limits[gpuv1alpha1.DefaultResourceName]; gpus.Value() != 2 || got.Requests.Cpu().Value() != 16 || got.Requests.Memory().Value() != 128<<30 {
		t.Errorf("%s: %+v", side, got)
	}
}

// A verdict is read from nodes and pods alone.
func TestJudge(t *testing.T) {
	var nodes []corev1.Node
	for i := range 4 {
		nodes = append(nodes, corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i), Labels: map[string]string{"gpu.warp.dev/leaf": fmt.Sprintf("l%d", i/2)}},
			Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
				"nvidia.com/gpu": resource.MustParse("8"), "cpu": resource.MustParse("100"), "memory": resource.MustParse("1Ti"),
			}},
		})
	}
	on := func(u unit, i int, node string) corev1.Pod {
		p := pod(u, i)
		p.Spec.NodeName = node
		p.Spec.Containers[0].Resources.Requests["nvidia.com/gpu"] = *resource.NewQuantity(int64(u.gpus), resource.DecimalSI)
		return *p
	}
	near, far, torn := unit{name: "near", pods: 2, gpus: 4}, unit{name: "far", pods: 2, gpus: 2}, unit{name: "torn", pods: 2, gpus: 2}
	all := []corev1.Pod{
		on(near, 0, "n0"), on(near, 1, "n1"), on(far, 0, "n0"), on(far, 1, "n2"), on(torn, 0, "n1"), on(torn, 1, ""),
	}
	v, err := judge(nodes, all, []unit{near, far, torn, {name: "missing", pods: 2}})
	if err != nil {
		t.Fatal(err)
	}
	if v.gangs != 2 || v.local != 1 || v.torn != 1 || v.leaves != 1.5 || v.idle != 2+2+6+8 || v.wholeNodes != 8 || v.wholeLeaves != 0 || v.fragmentation <= 0 {
		t.Errorf("%+v", v)
	}
	if _, err := judge(nodes, append(all, on(near, 0, "n0")), nil); err == nil || !strings.Contains(err.Error(), "oversold") {
		t.Errorf("10 of 8 GPUs are held: %v", err)
	}
	ended := on(near, 0, "n0")
	ended.Status.Phase = corev1.PodSucceeded
	if _, err := judge(nodes, append(all, ended), nil); err != nil {
		t.Errorf("a pod that has ended holds nothing: %v", err)
	}
}

func TestMediansAndQuantiles(t *testing.T) {
	if m := median([]float64{9, 1, 5}); m != 5 {
		t.Errorf("median %v", m)
	}
	if m := median([]float64{9, 1, 5, 6}); m != 5.5 {
		t.Errorf("median %v", m)
	}
	if r := ratios([]float64{2, 3, 4}, []float64{1, 0, 2}); len(r) != 2 || r[0] != 2 || r[1] != 2 {
		t.Errorf("ratios %v", r)
	}
	var waits []time.Duration
	for i := range 100 {
		waits = append(waits, time.Duration(100-i))
	}
	for q, want := range map[float64]time.Duration{0.5: 50, 0.99: 99, 1: 100, 0: 1} {
		if got := quantile(waits, q); got != want {
			t.Errorf("quantile %v: %d, want %d", q, got, want)
		}
	}
}

// Each pair begins with another side, and nobody is left out.
func TestSidesTakeTurns(t *testing.T) {
	sides := allSides()[:2]
	if first := inTurn(sides, 0); first[0].name != sides[0].name || len(first) != 2 {
		t.Errorf("%v", first)
	}
	if second := inTurn(sides, 1); second[0].name != sides[1].name || second[1].name != sides[0].name {
		t.Errorf("%v", second)
	}
}

func TestProxyCountsBytesOfBothDirectionsAsTheyFlow(t *testing.T) {
	more := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = w.Write(make([]byte, 1000))
		_ = http.NewResponseController(w).Flush()
		<-more
		_, _ = w.Write(make([]byte, 5000))
	}))
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p, err := startProxy(ctx, strings.TrimPrefix(server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.Post("http://"+p.address(), "text/plain", strings.NewReader(strings.Repeat("x", 2000)))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.ReadFull(response.Body, make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	if n := p.received.Load(); n < 1000 || n > 2000 {
		t.Errorf("%d bytes received while the answer is on its way", n)
	}
	close(more)
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Fatal(err)
	}
	if sent, received := p.sent.Load(), p.received.Load(); sent < 2000 || sent > 3000 || received < 6000 || received > 7000 {
		t.Errorf("%d bytes sent, %d received", sent, received)
	}
	cancel()
	if _, err := net.DialTimeout("tcp", p.address(), time.Second); err == nil {
		t.Error("the proxy outlives its context")
	}
}

func TestProcessorTimeIsThatOfTheProcess(t *testing.T) {
	before, err := processorSeconds(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	spent := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			t.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	start := spent()
	for n := 0; spent()-start < 100*time.Millisecond; n++ {
		_ = n
	}
	after, err := processorSeconds(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	// The kernel's two accounts are not read at one moment, and one of them counts in ticks.
	if told := after - before; told < 0.05 || told > 1 {
		t.Errorf("%.2f s of processor time, of 0.1 s or a little more", told)
	}
}
