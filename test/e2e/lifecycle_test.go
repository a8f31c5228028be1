package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

func TestWorkloadRunsToItsEnd(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	selector, names := c.nodes(t, 1)
	w := c.submit(t, gpuWorkload(c.namespace(t), "llama2", 1, 2, onNodes(selector), simulate("start-after", "1s")))
	phases := c.untilPhase(t, w, gpuv1alpha1.PhaseSucceeded)
	want := []gpuv1alpha1.WorkloadPhase{gpuv1alpha1.PhaseScheduling, gpuv1alpha1.PhaseScheduled, gpuv1alpha1.PhaseRunning, gpuv1alpha1.PhaseSucceeded}
	if !slices.Equal(phases, want) {
		t.Errorf("went through %v, want %v", phases, want)
	}
	s := w.Status
	if s.AssignedNode != names[0] || !slices.Equal(s.AssignedNodes, names) || s.JobName == "" || s.StartTime == nil || s.CompletionTime == nil || s.RetryCount != 0 {
		t.Errorf("status %+v", s)
	}
	pods := c.pods(t, w)
	if len(pods) != 1 || pods[0].Spec.NodeName != names[0] {
		t.Fatalf("%d pods", len(pods))
	}
	limit := pods[0].Spec.Containers[0].Resources.Limits["nvidia.com/gpu"]
	if env := pods[0].Spec.Containers[0].Env; limit.Value() != 2 || env[0].Name != "MODEL_NAME" || env[0].Value != "llama2" {
		t.Errorf("the pod has %s GPUs and environment %v", limit.String(), env)
	}
	for _, reason := range []string{"Planned", "Scheduled", "Running", "Succeeded"} {
		c.untilEvent(t, w, reason)
	}
}

func TestGangStaysInOneLeaf(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	w := c.submit(t, gpuWorkload(c.namespace(t), "gang", 4, 2, inOne("leaf")))
	c.untilPhase(t, w, gpuv1alpha1.PhaseSucceeded)
	leaves := map[string]bool{}
	for _, pod := range c.pods(t, w) {
		node := &corev1.Node{}
		if err := c.Get(t.Context(), client.ObjectKey{Name: pod.Spec.NodeName}, node); err != nil {
			t.Fatal(err)
		}
		leaves[node.Labels[gpuv1alpha1.LeafLabel]] = true
	}
	if len(leaves) != 1 || !strings.Contains(meta.FindStatusCondition(w.Status.Conditions, gpuv1alpha1.ConditionPlanned).Message, "all in leaf ") {
		t.Errorf("ran in leaves %v; %v", leaves, w.Status.Conditions)
	}
}

func TestFailureIsRetriedUntilItFails(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	w := c.submit(t, gpuWorkload(c.namespace(t), "broken", 2, 1, runFor("100ms"), simulate("fail", "true"), simulate("fail-index", "1")))
	var attempts []string
	var waits []time.Duration
	c.until(t, w, "Failed", func(w *gpuv1alpha1.GPUWorkload) bool {
		if n := w.Status.JobName; n != "" && !slices.Contains(attempts, n) {
			attempts = append(attempts, n)
		}
		if w.Status.NextRetryTime != nil && w.Status.Phase == gpuv1alpha1.PhasePending && len(waits) < int(w.Status.RetryCount) {
			waits = append(waits, time.Until(w.Status.NextRetryTime.Time))
		}
		return w.Status.Phase == gpuv1alpha1.PhaseFailed
	})
	if len(attempts) != 3 || w.Status.RetryCount != 2 || w.Status.Attempt != 2 {
		t.Errorf("Jobs %v, %d retries: 3 attempts were allowed", attempts, w.Status.RetryCount)
	}
	if !strings.Contains(w.Status.Message, "failed after 2 retries: pod "+attempts[2]) || !strings.Contains(w.Status.Message, "(rank 1)") {
		t.Errorf("message %q", w.Status.Message)
	}
	// 1 s and 2 s, plus up to 10 %, told as whole seconds.
	if len(waits) != 2 || waits[1] <= waits[0]-time.Second || waits[0] > 2*time.Second || waits[1] > 4*time.Second {
		t.Errorf("waited %v before the retries", waits)
	}
	c.untilEvent(t, w, "Retrying")
	c.untilEvent(t, w, "RetriesExhausted")
}

func TestFailureThatPassesIsSurvived(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	w := c.submit(t, gpuWorkload(c.namespace(t), "flaky", 2, 1, runFor("200ms"), simulate("fail-attempts", "1")))
	c.untilPhase(t, w, gpuv1alpha1.PhaseSucceeded)
	if w.Status.RetryCount != 1 {
		t.Errorf("%d retries", w.Status.RetryCount)
	}
	if jobs := c.jobs(t, w); len(jobs) != 1 || jobs[0].Name != w.Status.JobName {
		t.Errorf("%d Jobs are left", len(jobs))
	}
}

func TestFailedMemberAloneIsReplaced(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	w := gpuWorkload(c.namespace(t), "member", 2, 1, runFor("3s"), func(w *gpuv1alpha1.GPUWorkload) {
		w.Spec.RestartPolicy = gpuv1alpha1.RestartMember
	})
	c.submit(t, w)
	c.untilPhase(t, w, gpuv1alpha1.PhaseRunning)
	job := w.Status.JobUID
	var victim, survivor corev1.Pod
	for _, pod := range c.pods(t, w) {
		if pod.Annotations["batch.kubernetes.io/job-completion-index"] == "1" {
			victim = pod
		} else {
			survivor = pod
		}
	}
	failed := victim.DeepCopy()
	failed.Status.Phase = corev1.PodFailed
	if err := c.Status().Update(t.Context(), failed); err != nil {
		t.Fatal(err)
	}
	c.until(t, w, "one retry on", func(w *gpuv1alpha1.GPUWorkload) bool { return w.Status.RetryCount == 1 })
	c.untilPhase(t, w, gpuv1alpha1.PhaseSucceeded)
	names := map[string]corev1.PodPhase{}
	for _, pod := range c.pods(t, w) {
		names[pod.Name] = pod.Status.Phase
	}
	if w.Status.JobUID != job || len(names) != 3 || names[victim.Name] == "" || names[survivor.Name] != corev1.PodSucceeded {
		t.Errorf("Job %s, was %s; pods %v", w.Status.JobUID, job, names)
	}
}

func TestDeletionTakesEverythingAlong(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	selector, _ := c.nodes(t, 2)
	ns := c.namespace(t)
	w := c.submit(t, gpuWorkload(ns, "gone", 2, 8, forever, onNodes(selector)))
	c.untilPhase(t, w, gpuv1alpha1.PhaseRunning)
	// Another one waits for the same GPUs.
	next := c.submit(t, gpuWorkload(ns, "next", 2, 8, onNodes(selector)))
	c.untilReason(t, next, gpuv1alpha1.ConditionPlanned, "NoRoom")
	if err := c.Delete(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	c.untilPhase(t, next, gpuv1alpha1.PhaseSucceeded)
	eventually(t, func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(w), w); client.IgnoreNotFound(err) != nil || err == nil {
			return fmt.Errorf("the workload is there still: %w", err)
		}
		if jobs, pods := c.jobs(t, w), c.pods(t, w); len(jobs) > 0 || len(pods) > 0 {
			return fmt.Errorf("%d Jobs and %d pods outlive the workload", len(jobs), len(pods))
		}
		return nil
	})
	if next.Status.RetryCount != 0 {
		t.Error("waiting for room used up a retry")
	}
}

func TestSuspendAndResume(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	w := c.submit(t, gpuWorkload(c.namespace(t), "paused", 2, 1, forever))
	c.untilPhase(t, w, gpuv1alpha1.PhaseRunning)
	c.edit(t, w, func(w *gpuv1alpha1.GPUWorkload) { w.Spec.Suspend = true })
	c.until(t, w, "suspended", func(w *gpuv1alpha1.GPUWorkload) bool {
		return w.Status.Phase == gpuv1alpha1.PhasePending && meta.IsStatusConditionTrue(w.Status.Conditions, gpuv1alpha1.ConditionSuspended)
	})
	eventually(t, func() error {
		if pods := c.pods(t, w); len(pods) > 0 {
			return fmt.Errorf("%d pods of a suspended workload", len(pods))
		}
		return nil
	})
	// While suspended, the spec may change.
	c.edit(t, w, func(w *gpuv1alpha1.GPUWorkload) { w.Spec.Parallelism = 3; runFor("1s")(w) })
	c.edit(t, w, func(w *gpuv1alpha1.GPUWorkload) { w.Spec.Suspend = false })
	c.untilPhase(t, w, gpuv1alpha1.PhaseSucceeded)
	if w.Status.RetryCount != 0 || w.Status.Pods.Succeeded != 3 || meta.IsStatusConditionTrue(w.Status.Conditions, gpuv1alpha1.ConditionSuspended) {
		t.Errorf("status %+v", w.Status)
	}
}

func TestSuspendedFromTheStart(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	w := c.submit(t, gpuWorkload(c.namespace(t), "later", 1, 1, func(w *gpuv1alpha1.GPUWorkload) { w.Spec.Suspend = true }))
	c.untilReason(t, w, gpuv1alpha1.ConditionSuspended, "Suspended")
	if jobs := c.jobs(t, w); len(jobs) > 0 {
		t.Errorf("%d Jobs of a workload that never ran", len(jobs))
	}
	c.edit(t, w, func(w *gpuv1alpha1.GPUWorkload) { w.Spec.Suspend = false })
	c.untilPhase(t, w, gpuv1alpha1.PhaseSucceeded)
}

func TestDeadlineAndTimeToLive(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	ns := c.namespace(t)
	slow := c.submit(t, gpuWorkload(ns, "slow", 1, 1, forever, func(w *gpuv1alpha1.GPUWorkload) {
		w.Spec.ActiveDeadlineSeconds = ptr.To[int64](2)
	}))
	brief := c.submit(t, gpuWorkload(ns, "brief", 1, 1, runFor("100ms"), func(w *gpuv1alpha1.GPUWorkload) {
		w.Spec.TTLSecondsAfterFinished = ptr.To[int32](1)
	}))
	c.untilReason(t, slow, gpuv1alpha1.ConditionFinished, "DeadlineExceeded")
	if slow.Status.Phase != gpuv1alpha1.PhaseFailed || !strings.Contains(slow.Status.Message, "activeDeadlineSeconds (2 s)") {
		t.Errorf("%s: %s", slow.Status.Phase, slow.Status.Message)
	}
	eventually(t, func() error {
		if pods := c.pods(t, slow); len(pods) > 0 {
			return fmt.Errorf("%d pods outlive their deadline", len(pods))
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(brief), brief); client.IgnoreNotFound(err) != nil || err == nil {
			return errors.New("the workload outlives its time to live")
		}
		return nil
	})
}

func TestElasticGangStartsSmaller(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	selector, _ := c.nodes(t, 2)
	w := c.submit(t, gpuWorkload(c.namespace(t), "elastic", 4, 8, onNodes(selector), func(w *gpuv1alpha1.GPUWorkload) {
		w.Spec.MinParallelism = ptr.To[int32](1)
	}))
	c.untilPhase(t, w, gpuv1alpha1.PhaseSucceeded)
	if w.Status.Pods.Desired != 2 || w.Status.Pods.Succeeded != 2 {
		t.Errorf("pods %+v: two nodes take two", w.Status.Pods)
	}
}

func TestCostOptimizedRunsOnCheapNodes(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	selector, names := c.nodes(t, 3)
	for i, name := range names {
		c.patchNode(t, name, func(n *corev1.Node) {
			delete(n.Labels, gpuv1alpha1.CheapNodeLabel)
			if i == 2 {
				n.Labels[gpuv1alpha1.CheapNodeLabel] = "true"
			}
		})
	}
	ns := c.namespace(t)
	cheap := func(w *gpuv1alpha1.GPUWorkload) { w.Spec.SchedulingStrategy = "costOptimized" }
	first := c.submit(t, gpuWorkload(ns, "first", 1, 8, forever, onNodes(selector), cheap))
	c.untilPhase(t, first, gpuv1alpha1.PhaseRunning)
	second := c.submit(t, gpuWorkload(ns, "second", 1, 8, onNodes(selector), cheap))
	c.untilPhase(t, second, gpuv1alpha1.PhaseSucceeded)
	if first.Status.AssignedNode != names[2] || second.Status.AssignedNode == names[2] {
		t.Errorf("first on %s, second on %s; the cheap node is %s", first.Status.AssignedNode, second.Status.AssignedNode, names[2])
	}
}

// Strategies that pack join what runs; the others keep away from it. Each places a gang, too.
func TestEveryStrategyPlacesPodsAndGangs(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	for _, v := range []struct {
		strategy string
		joins    bool
	}{
		{"leastLoaded", false},
		{"binPack", true},
		{"topologyAware", true},
		{"fragmentationAware", true},
	} {
		t.Run(v.strategy, func(t *testing.T) {
			t.Parallel()
			ns := c.namespace(t)
			selector, _ := c.nodes(t, 3)
			by := func(w *gpuv1alpha1.GPUWorkload) { w.Spec.SchedulingStrategy = v.strategy }
			first := c.submit(t, gpuWorkload(ns, "first", 1, 1, forever, onNodes(selector), by))
			c.untilPhase(t, first, gpuv1alpha1.PhaseRunning)
			second := c.submit(t, gpuWorkload(ns, "second", 1, 1, forever, onNodes(selector), by))
			c.untilPhase(t, second, gpuv1alpha1.PhaseRunning)
			if joined := first.Status.AssignedNode == second.Status.AssignedNode; joined != v.joins {
				t.Errorf("first on %s, second on %s", first.Status.AssignedNode, second.Status.AssignedNode)
			}
			// One pod of it beside what runs, or on a free node; there is room either way.
			gang := c.submit(t, gpuWorkload(ns, "gang", 2, 6, onNodes(selector), by))
			c.untilPhase(t, gang, gpuv1alpha1.PhaseSucceeded)
		})
	}
}

func TestFastWorkloadsStillCountAsScheduled(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	w := c.submit(t, gpuWorkload(c.namespace(t), "blink", 3, 1, runFor("1ms")))
	c.untilPhase(t, w, gpuv1alpha1.PhaseSucceeded)
	if found := meta.FindStatusCondition(w.Status.Conditions, gpuv1alpha1.ConditionScheduled); found == nil || found.Status != metav1.ConditionTrue {
		t.Errorf("conditions %v", w.Status.Conditions)
	}
}
