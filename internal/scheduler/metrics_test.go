package scheduler

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/reyisjones/gpu-orchestrator/core/placement"
	"github.com/reyisjones/gpu-orchestrator/internal/state"
	"github.com/reyisjones/gpu-orchestrator/internal/telemetry"
)

// deskOf is a desk in a cluster of one node with 8 GPUs.
func deskOf(t *testing.T, r prometheus.Registerer) *desk {
	t.Helper()
	strategies, err := placement.NewRegistry(placement.Builtin()...)
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := telemetry.NewPlacement(r)
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{
		state: state.New(state.Levels(state.DefaultLevels()), strategies), metrics: metrics, roster: newRoster(),
		clock: clocktesting.NewFakeClock(time.Unix(1000, 0)),
	}
	d.state.SetNode(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n"},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8"), "pods": resource.MustParse("110")},
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	})
	return d
}

func gpuPodOf(gpus, strategy string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "p", UID: "p", Annotations: map[string]string{"gpu.warp.dev/strategy": strategy}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse(gpus)},
		}}}},
	}
}

func TestDecisionsAreCountedByStrategyAndOutcome(t *testing.T) {
	r := prometheus.NewRegistry()
	d := deskOf(t, r)
	for _, pod := range []*corev1.Pod{
		gpuPodOf("8", ""), gpuPodOf("8", "binPack"), gpuPodOf("9", "binPack"), gpuPodOf("1", "a whim"), gpuPodOf("1", "another"),
	} {
		ask, err := state.GangOf(pod)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = d.decide(&ask, askedAlone(pod))
	}
	if err := testutil.GatherAndCompare(r, strings.NewReader(`
# HELP topology_placement_decisions_total Decisions by scheduling strategy and outcome (feasible, infeasible, undecided, invalid). A gang is one decision; one that waits is decided anew whenever there may be room.
# TYPE topology_placement_decisions_total counter
topology_placement_decisions_total{outcome="feasible",strategy="binPack"} 1
topology_placement_decisions_total{outcome="feasible",strategy="leastLoaded"} 1
topology_placement_decisions_total{outcome="infeasible",strategy="binPack"} 1
topology_placement_decisions_total{outcome="invalid",strategy="unknown"} 2
`), "topology_placement_decisions_total"); err != nil {
		t.Error(err)
	}
}

func TestAGangWaitsUntilItsLastPodIsBoundForTheFirstTime(t *testing.T) {
	r := prometheus.NewRegistry()
	d := deskOf(t, r)
	g := &gang{since: time.Unix(970, 0), members: map[types.UID]*member{}}
	for uid, at := range map[types.UID]phase{"a": bound, "b": reserved} {
		g.join(&member{pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid}}, phase: at})
	}
	waits := func() (count uint64, sum float64) {
		families, err := r.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() == "topology_gang_wait_seconds" {
				for _, m := range f.GetMetric() {
					count += m.GetHistogram().GetSampleCount()
					sum += m.GetHistogram().GetSampleSum()
				}
			}
		}
		return count, sum
	}
	d.boundWhole(g)
	if n, _ := waits(); n != 0 {
		t.Error("a gang that is bound in part was counted")
	}
	g.to(g.members["b"], bound)
	d.boundWhole(g)
	d.boundWhole(g)
	if n, sum := waits(); n != 1 || sum != 30 {
		t.Errorf("%d waits of %.0f s, one of 30 s was", n, sum)
	}
}
