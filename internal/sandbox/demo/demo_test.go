package demo

import (
	"testing"
	"time"

	"github.com/reyisjones/gpu-orchestrator/internal/sandbox/cluster"
)

// What is asked for at once must fit on the smallest clusters too, or the
// demonstration waits for room that never comes.
func TestWorkloadsFitTheCluster(t *testing.T) {
	for _, size := range []Size{{1, 1}, {1, 8}, {2, 4}, {8, 8}, {1000, 8}} {
		workloads, err := Workloads(size)
		if err != nil {
			t.Fatal(err)
		}
		if len(workloads) < 3 {
			t.Errorf("there are %d workloads", len(workloads))
		}
		for _, w := range workloads {
			if int(w.Spec.GPUCount) > size.GPUsPerNode || int(w.Spec.Parallelism) > size.Nodes || w.Spec.GPUCount < 1 || w.Spec.Parallelism < 1 {
				t.Errorf("%s wants %d pods of %d GPUs from %+v", w.Name, w.Spec.Parallelism, w.Spec.GPUCount, size)
			}
			if w.Spec.Template.Annotations["sandbox.gpu.warp.dev/run-for"] == "" {
				t.Errorf("%s does not say how long it runs", w.Name)
			}
		}
	}
}

func TestWorkloadsFitTheSmallestMixedCluster(t *testing.T) {
	profile, err := cluster.ProfileNamed("mixed")
	if err != nil {
		t.Fatal(err)
	}
	workloads, err := Workloads(Size{Nodes: 8, GPUsPerNode: 8})
	if err != nil {
		t.Fatal(err)
	}
	whole := 0
	for _, node := range profile.Nodes(8, 8, time.Now()) {
		if n := node.Status.Allocatable["nvidia.com/gpu"]; n.Value() == 8 {
			whole++
		}
	}
	for _, w := range workloads {
		if int(w.Spec.Parallelism) > whole {
			t.Errorf("%s wants %d nodes of %d", w.Name, w.Spec.Parallelism, whole)
		}
	}
}
