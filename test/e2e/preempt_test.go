package e2e

import (
	"fmt"
	"math/rand/v2"
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

func withPriority(p gpuv1alpha1.WorkloadPriority) func(*gpuv1alpha1.GPUWorkload) {
	return func(w *gpuv1alpha1.GPUWorkload) { w.Spec.Priority = p }
}

func evicting(w *gpuv1alpha1.GPUWorkload) {
	w.Spec.PreemptionPolicy = gpuv1alpha1.PreemptLowerPriority
}

// A gang of high priority takes the place of one of low priority, which is told why, loses no
// retry and runs again once there is room. What may not be evicted stays where it is.
func TestHigherPriorityTakesThePlaceOfLower(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	ns := c.namespace(t)
	selector, names := c.nodes(t, 4)
	foreign := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "foreign"},
		Spec: corev1.PodSpec{NodeName: names[0], Containers: []corev1.Container{{Name: "c", Image: "x",
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": quantity("8")}}}}},
	}
	if err := c.Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign); err != nil || foreign.Status.Phase != corev1.PodRunning {
			return fmt.Errorf("the foreign pod is %s: %w", foreign.Status.Phase, err)
		}
		return nil
	})
	fixed := c.submit(t, gpuWorkload(ns, "fixed", 1, 8, forever, onNodes(selector), withPriority(gpuv1alpha1.PriorityLow),
		func(w *gpuv1alpha1.GPUWorkload) { w.Spec.Preemptible = ptr.To(false) }))
	c.untilPhase(t, fixed, gpuv1alpha1.PhaseRunning)
	victim := c.submit(t, gpuWorkload(ns, "victim", 2, 8, forever, onNodes(selector), withPriority(gpuv1alpha1.PriorityLow)))
	c.untilPhase(t, victim, gpuv1alpha1.PhaseRunning)

	// Who does not ask for it waits, however important.
	patient := c.submit(t, gpuWorkload(ns, "patient", 2, 8, onNodes(selector), withPriority(gpuv1alpha1.PriorityCritical)))
	c.untilReason(t, patient, gpuv1alpha1.ConditionPlanned, "NoRoom")
	if err := c.Delete(t.Context(), patient); err != nil {
		t.Fatal(err)
	}

	start := time.Now()
	urgent := c.submit(t, gpuWorkload(ns, "urgent", 2, 8, forever, onNodes(selector), withPriority(gpuv1alpha1.PriorityHigh), evicting))
	c.untilPhase(t, urgent, gpuv1alpha1.PhaseRunning)
	t.Logf("runs %s after it was created", time.Since(start).Round(10*time.Millisecond))
	if len(urgent.Status.Preempting) > 0 || urgent.Status.Attempt != 0 {
		t.Errorf("status %+v", urgent.Status)
	}
	c.until(t, victim, "waiting for room in its second attempt", func(w *gpuv1alpha1.GPUWorkload) bool {
		planned := meta.FindStatusCondition(w.Status.Conditions, gpuv1alpha1.ConditionPlanned)
		return w.Status.Attempt == 1 && planned != nil && planned.Reason == "NoRoom"
	})
	found := meta.FindStatusCondition(victim.Status.Conditions, gpuv1alpha1.ConditionPreempted)
	if found == nil || found.Status != metav1.ConditionTrue || !strings.Contains(found.Message, "made way for "+ns+"/urgent, which has priority high") {
		t.Errorf("condition %+v", found)
	}
	c.untilEvent(t, victim, "Preempted")
	c.untilEvent(t, urgent, "Preempting")
	for _, w := range []*gpuv1alpha1.GPUWorkload{fixed} {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(w), w); err != nil || w.Status.Phase != gpuv1alpha1.PhaseRunning || w.Status.Attempt != 0 {
			t.Errorf("%v; %s is %s in attempt %d", err, w.Name, w.Status.Phase, w.Status.Attempt)
		}
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign); err != nil || foreign.DeletionTimestamp != nil {
		t.Errorf("the foreign pod: %v", err)
	}
	if err := c.Delete(t.Context(), urgent); err != nil {
		t.Fatal(err)
	}
	c.untilPhase(t, victim, gpuv1alpha1.PhaseRunning)
	if victim.Status.RetryCount != 0 || victim.Status.Attempt != 1 || meta.IsStatusConditionTrue(victim.Status.Conditions, gpuv1alpha1.ConditionPreempted) {
		t.Errorf("status %+v", victim.Status)
	}
}

// Workloads of all priorities evict each other while the manager is killed at random moments:
// all of them end well, none counts a retry, and no GPU is sold twice.
func TestManagerKilledWhileWorkloadsEvictEachOther(t *testing.T) {
	const workloads = 24
	c := ownCluster(t, "--nodes=3", "--no-manager")
	ns, log := c.namespace(t), logFile(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	made := watchJobs(t, c, ns)
	order := []gpuv1alpha1.WorkloadPriority{gpuv1alpha1.PriorityLow, gpuv1alpha1.PriorityMedium, gpuv1alpha1.PriorityHigh, gpuv1alpha1.PriorityCritical}
	for i := range workloads {
		c.submit(t, gpuWorkload(ns, fmt.Sprintf("w%02d", i), int32(1+dice.IntN(3)), 8, runFor("1s"), withPriority(order[i*4/workloads]), evicting))
	}
	kills := 0
	for deadline := time.Now().Add(3 * time.Minute); ; kills++ {
		cmd := c.manager(t, log)
		lifetime := time.Duration(1000+dice.IntN(3000)) * time.Millisecond
		if kills >= 12 {
			lifetime = time.Until(deadline)
		}
		done := c.settledWithin(t, lifetime, func() error { return allSucceeded(t.Context(), c, ns, workloads) })
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if done == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %d kills: %v", kills, done)
		}
	}
	var list gpuv1alpha1.GPUWorkloadList
	if err := c.List(t.Context(), &list, client.InNamespace(ns)); err != nil {
		t.Fatal(err)
	}
	evicted := 0
	for _, w := range list.Items {
		if w.Status.RetryCount != 0 || len(w.Status.Preempting) > 0 {
			t.Errorf("%s counts %d retries and evicts %v", w.Name, w.Status.RetryCount, w.Status.Preempting)
		}
		evicted += int(w.Status.Attempt)
	}
	t.Logf("%d workloads ended well through %d kills and %d more attempts", workloads, kills, evicted)
	for key, uids := range made() {
		if len(uids) > 1 {
			t.Errorf("%d Jobs were made for %s: %v", len(uids), key, uids)
		}
	}
	if evicted == 0 || kills == 0 {
		t.Error("nobody was evicted or killed: the test did not test much")
	}
}
