package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

// What cannot be carried out is reported with a sentence that says what to change, and runs as
// soon as it is changed, without being deleted.
func TestBadSpecsSayWhatToChangeAndRunOnceChanged(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	ns, checked := c.unchecked(t), c.namespace(t)
	gpu := corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": quantity("1")}}
	// Two containers with the same GPU resource the CRD itself refuses.
	amd := corev1.ResourceRequirements{Limits: corev1.ResourceList{"amd.com/gpu": quantity("1")}}
	for _, v := range []struct {
		name, condition, reason, says string
		spoil, mend                   func(*gpuv1alpha1.GPUWorkload)
	}{
		{
			"strategy", gpuv1alpha1.ConditionAccepted, "InvalidSpec", "registered are ",
			func(w *gpuv1alpha1.GPUWorkload) { w.Spec.SchedulingStrategy = "best" },
			func(w *gpuv1alpha1.GPUWorkload) { w.Spec.SchedulingStrategy = "random" },
		},
		{
			"too-many-gpus", gpuv1alpha1.ConditionPlanned, "NeverFits", "lower gpuCount, or spread over more pods with parallelism",
			func(w *gpuv1alpha1.GPUWorkload) { w.Spec.GPUCount = 16 },
			func(w *gpuv1alpha1.GPUWorkload) { w.Spec.GPUCount, w.Spec.Parallelism = 2, 2 },
		},
		{
			"unknown-level", gpuv1alpha1.ConditionAccepted, "InvalidSpec", "this installation knows region, zone, core, spine, leaf",
			inOne("cabinet"), inOne("leaf"),
		},
		{
			"level-nobody-carries", gpuv1alpha1.ConditionPlanned, "NeverFits", `no node carries level "rack"`,
			inOne("rack"), inOne("spine"),
		},
		{
			"two-gpu-containers", gpuv1alpha1.ConditionAccepted, "InvalidSpec", "take the request out of the other",
			func(w *gpuv1alpha1.GPUWorkload) {
				w.Spec.Template.Spec.Containers = []corev1.Container{{Name: "a", Image: "x", Resources: gpu}, {Name: "b", Image: "x", Resources: amd}}
			},
			func(w *gpuv1alpha1.GPUWorkload) {
				w.Spec.Template.Spec.Containers[1].Resources = corev1.ResourceRequirements{}
			},
		},
		{
			"refused-by-the-api-server", gpuv1alpha1.ConditionAccepted, "JobRefused", "spec.template: the API server refuses spec.template.spec.containers[0].name",
			func(w *gpuv1alpha1.GPUWorkload) { w.Spec.Template.Spec.Containers[0].Name = "Not A Name" },
			func(w *gpuv1alpha1.GPUWorkload) { w.Spec.Template.Spec.Containers[0].Name = "a-name" },
		},
		{
			"nobody-selected", gpuv1alpha1.ConditionPlanned, "NeverFits", "not selected by the template's nodeSelector",
			onNodes(map[string]string{"e2e/owner": "nobody"}),
			func(w *gpuv1alpha1.GPUWorkload) { w.Spec.Template.Spec.NodeSelector = nil },
		},
	} {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			if v.reason == "InvalidSpec" {
				err := c.Create(t.Context(), gpuWorkload(checked, v.name, 1, 1, runFor("100ms"), v.spoil))
				if err == nil || !strings.Contains(err.Error(), v.says) {
					t.Errorf("the webhook should have refused it with %q, not: %v", v.says, err)
				}
			}
			w := c.submit(t, gpuWorkload(ns, v.name, 1, 1, runFor("100ms"), v.spoil))
			c.untilReason(t, w, v.condition, v.reason)
			if w.Status.Phase != gpuv1alpha1.PhasePending || !strings.Contains(w.Status.Message, v.says) {
				t.Errorf("%s: %s", w.Status.Phase, w.Status.Message)
			}
			c.untilEvent(t, w, v.reason)
			c.edit(t, w, v.mend)
			c.untilPhase(t, w, gpuv1alpha1.PhaseSucceeded)
			if w.Status.RetryCount != 0 {
				t.Errorf("%d retries: nothing had failed", w.Status.RetryCount)
			}
		})
	}
}

// The scheduler that binds knows of things that placement does not see. What it refuses is
// taken back and planned on another node, and the Job counts no failure.
func TestOvertakenPlansAreMadeAnew(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	for _, gang := range []struct {
		name string
		pods int32
	}{{"whole gang unbound", 1}, {"one member unbound", 2}} {
		t.Run(gang.name, func(t *testing.T) {
			t.Parallel()
			ns := c.namespace(t)
			selector, names := c.nodes(t, int(gang.pods)+1)
			decoy := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "decoy", Labels: map[string]string{"keep": "away"}},
				Spec:       corev1.PodSpec{NodeName: names[0], Containers: []corev1.Container{{Name: "c", Image: "x"}}},
			}
			if err := c.Create(t.Context(), decoy); err != nil {
				t.Fatal(err)
			}
			w := c.submit(t, gpuWorkload(ns, "refused", gang.pods, 8, runFor("6s"), onNodes(selector), func(w *gpuv1alpha1.GPUWorkload) {
				w.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
					RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
						TopologyKey:   "kubernetes.io/hostname",
						LabelSelector: &metav1.LabelSelector{MatchLabels: decoy.Labels},
					}},
				}}
			}))
			first := ""
			c.until(t, w, "Succeeded", func(w *gpuv1alpha1.GPUWorkload) bool {
				if first == "" && len(w.Status.AssignedNodes) > 0 {
					first = w.Status.AssignedNode
				}
				return w.Status.Phase == gpuv1alpha1.PhaseSucceeded
			})
			if first != names[0] {
				t.Fatalf("planned on %s first: the test needs the plan to run into %s", first, names[0])
			}
			for _, pod := range c.pods(t, w) {
				if pod.Spec.NodeName == names[0] {
					t.Errorf("%s ran on the node that refuses it", pod.Name)
				}
			}
			for _, job := range c.jobs(t, w) {
				if job.Status.Failed != 0 || job.Status.Succeeded != gang.pods {
					t.Errorf("the Job counts %d failed and %d succeeded pods", job.Status.Failed, job.Status.Succeeded)
				}
			}
			if w.Status.RetryCount != 0 {
				t.Errorf("%d retries: nothing had failed", w.Status.RetryCount)
			}
			c.untilEvent(t, w, "PlanOvertaken")
		})
	}
}

func TestJobDeletedBySomebodyElseIsMadeAnew(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	w := c.submit(t, gpuWorkload(c.namespace(t), "robbed", 2, 1, runFor("3s")))
	c.untilPhase(t, w, gpuv1alpha1.PhaseRunning)
	jobs := c.jobs(t, w)
	if err := c.Delete(t.Context(), &jobs[0], client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		t.Fatal(err)
	}
	c.until(t, w, "on its second attempt", func(w *gpuv1alpha1.GPUWorkload) bool { return w.Status.Attempt == 1 })
	c.untilPhase(t, w, gpuv1alpha1.PhaseSucceeded)
	if w.Status.RetryCount != 0 {
		t.Errorf("%d retries: nothing had failed", w.Status.RetryCount)
	}
}

// A gang that its Job cannot make whole never starts in part, and does not keep its GPUs for
// ever.
func TestGangThatCannotBeWholeStartsNoPod(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	ns := c.namespace(t)
	selector, _ := c.nodes(t, 2)
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "one"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"pods": quantity("1")}},
	}
	if err := c.Create(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(quota), quota); err != nil {
			return err
		}
		if len(quota.Status.Hard) == 0 {
			return errors.New("the quota is not in force yet")
		}
		return nil
	})
	w := c.submit(t, gpuWorkload(ns, "torn", 2, 8, runFor("100ms"), onNodes(selector)))
	c.untilReason(t, w, gpuv1alpha1.ConditionPlanned, "NoProgress")
	if !strings.Contains(w.Status.Message, "made only 1 of 2 pods within 20s: look for a quota") || w.Status.NextRetryTime == nil {
		t.Errorf("%s, next retry %v", w.Status.Message, w.Status.NextRetryTime)
	}
	for _, pod := range c.pods(t, w) {
		if pod.Spec.NodeName != "" {
			t.Errorf("%s was bound alone", pod.Name)
		}
	}
	// Its GPUs are free for others.
	other := c.submit(t, gpuWorkload(c.namespace(t), "other", 2, 8, runFor("100ms"), onNodes(selector)))
	c.untilPhase(t, other, gpuv1alpha1.PhaseSucceeded)
	// Suspending and resuming tries again at once.
	if err := c.Delete(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	c.edit(t, w, func(w *gpuv1alpha1.GPUWorkload) { w.Spec.Suspend = true })
	c.untilReason(t, w, gpuv1alpha1.ConditionSuspended, "Suspended")
	c.edit(t, w, func(w *gpuv1alpha1.GPUWorkload) { w.Spec.Suspend = false })
	c.untilPhase(t, w, gpuv1alpha1.PhaseSucceeded)
	if w.Status.RetryCount != 0 {
		t.Errorf("%d retries: nothing had failed", w.Status.RetryCount)
	}
}

func TestSchedulerThatDoesNotRunIsNamed(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	w := c.submit(t, gpuWorkload(c.namespace(t), "ignored", 1, 1, func(w *gpuv1alpha1.GPUWorkload) { w.Spec.SchedulerName = "nobody" }))
	c.until(t, w, "waiting for its scheduler", func(w *gpuv1alpha1.GPUWorkload) bool {
		return strings.Contains(w.Status.Message, `scheduler "nobody" has not looked at the rest`)
	})
}

// A workload that waits starts when a node that it can use appears or comes back.
func TestNodesWakeTheWaiting(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	selector, names := c.nodes(t, 1)
	cordon := func(on bool) {
		c.patchNode(t, names[0], func(n *corev1.Node) { n.Spec.Unschedulable = on })
	}
	cordon(true)
	w := c.submit(t, gpuWorkload(c.namespace(t), "waits", 1, 1, onNodes(selector)))
	c.untilReason(t, w, gpuv1alpha1.ConditionPlanned, "NoRoom")
	if !strings.Contains(w.Status.Message, "1 is cordoned") {
		t.Error(w.Status.Message)
	}
	cordon(false)
	c.untilPhase(t, w, gpuv1alpha1.PhaseSucceeded)
}

// When room appears, those that wait get it in the order of their priority.
func TestWaitingWorkloadsStartByPriority(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	ns := c.namespace(t)
	selector, _ := c.nodes(t, 1)
	filler := c.submit(t, gpuWorkload(ns, "filler", 1, 8, forever, onNodes(selector)))
	c.untilPhase(t, filler, gpuv1alpha1.PhaseRunning)
	order := []gpuv1alpha1.WorkloadPriority{gpuv1alpha1.PriorityLow, gpuv1alpha1.PriorityMedium, gpuv1alpha1.PriorityHigh, gpuv1alpha1.PriorityCritical}
	var waiting []*gpuv1alpha1.GPUWorkload
	for _, priority := range order {
		w := c.submit(t, gpuWorkload(ns, string(priority), 1, 8, runFor("300ms"), onNodes(selector), func(w *gpuv1alpha1.GPUWorkload) { w.Spec.Priority = priority }))
		c.untilReason(t, w, gpuv1alpha1.ConditionPlanned, "NoRoom")
		waiting = append(waiting, w)
	}
	if err := c.Delete(t.Context(), filler); err != nil {
		t.Fatal(err)
	}
	// The most important one first: whenever one has succeeded, all that matter less still wait.
	for i := len(waiting) - 1; i >= 0; i-- {
		c.untilPhase(t, waiting[i], gpuv1alpha1.PhaseScheduled)
		for _, later := range waiting[:i] {
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(later), later); err != nil || later.Status.Phase != gpuv1alpha1.PhasePending {
				t.Errorf("%v: %s is %s while %s has its turn", err, later.Name, later.Status.Phase, waiting[i].Name)
			}
		}
		c.untilPhase(t, waiting[i], gpuv1alpha1.PhaseSucceeded)
	}
}

// The schema of a pod template lets in what Go's types do not hold. One such workload must not
// make the list of all workloads unreadable, or nobody's would run.
func TestUnreadableTemplateHurtsNobodyElse(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	ns := c.unchecked(t)
	poison := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "gpu.warp.dev/v1alpha1", "kind": "GPUWorkload",
		"metadata": map[string]any{"namespace": ns, "name": "poison"},
		"spec": map[string]any{
			"modelName": "m",
			"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{
				"name": "c", "image": "x",
				"readinessProbe": map[string]any{"httpGet": map[string]any{"port": int64(3000000000)}},
			}}}},
		},
	}}
	if err := c.Create(t.Context(), poison); err != nil {
		t.Fatal(err)
	}
	w := &gpuv1alpha1.GPUWorkload{}
	eventually(t, func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(poison), w); err != nil {
			return err
		}
		if !strings.Contains(w.Status.Message, "spec.template: it cannot be read as a pod template") {
			return fmt.Errorf("message %q", w.Status.Message)
		}
		return nil
	})
	// A manager that starts anew lists them all.
	other := c.submit(t, gpuWorkload(ns, "other", 1, 1, runFor("100ms")))
	c.untilPhase(t, other, gpuv1alpha1.PhaseSucceeded)
	var list gpuv1alpha1.GPUWorkloadList
	if err := c.List(t.Context(), &list, client.InNamespace(ns)); err != nil || len(list.Items) != 2 {
		t.Errorf("listed %d workloads: %v", len(list.Items), err)
	}
	before := w.DeepCopy()
	if err := c.Patch(t.Context(), poison, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"template":null}}`))); err != nil {
		t.Fatal(err)
	}
	c.untilPhase(t, before, gpuv1alpha1.PhaseSucceeded)
}

// Somebody else's Job of the name that ours would have is never touched.
func TestForeignJobIsNotTaken(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	ns := c.namespace(t)
	w := gpuWorkload(ns, "squatted", 1, 1, runFor("5s"), func(w *gpuv1alpha1.GPUWorkload) { w.Spec.Suspend = true })
	c.submit(t, w)
	c.untilReason(t, w, gpuv1alpha1.ConditionSuspended, "Suspended")
	// The name is known once the UID is: another workload's Job shows the pattern, so take it
	// from a first attempt, then squat on the second's.
	c.edit(t, w, func(w *gpuv1alpha1.GPUWorkload) { w.Spec.Suspend = false })
	c.until(t, w, "with a Job", func(w *gpuv1alpha1.GPUWorkload) bool { return w.Status.JobUID != "" })
	squatted := strings.TrimSuffix(w.Status.JobName, "-0") + "-1"
	job := c.jobs(t, w)
	foreign := job[0].DeepCopy()
	foreign.ObjectMeta = metav1.ObjectMeta{Namespace: ns, Name: squatted}
	foreign.Spec.Selector, foreign.Spec.Template.Labels = nil, map[string]string{"app": "foreign"}
	foreign.Spec.Suspend = new(bool)
	*foreign.Spec.Suspend = true
	if err := c.Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), &job[0], client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
	c.until(t, w, "in conflict", func(w *gpuv1alpha1.GPUWorkload) bool {
		return strings.Contains(w.Status.Message, "is not this workload's: delete it")
	})
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign); err != nil || len(foreign.OwnerReferences) > 0 {
		t.Errorf("the foreign Job: %v, owners %v", err, foreign.OwnerReferences)
	}
	if err := c.Delete(t.Context(), foreign, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
	c.untilPhase(t, w, gpuv1alpha1.PhaseSucceeded)
}
