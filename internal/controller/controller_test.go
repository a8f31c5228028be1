package controller

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	ctrl "sigs.k8s.io/controller-runtime"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/internal/state"
)

func testWorkload(edits ...func(*gpuv1alpha1.GPUWorkload)) *gpuv1alpha1.GPUWorkload {
	w := &gpuv1alpha1.GPUWorkload{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "llama2", UID: "11111111-2222-3333-4444-555555555555"},
		Spec: gpuv1alpha1.GPUWorkloadSpec{
			ModelName: "llama2", GPUCount: 2, Parallelism: 4, RestartPolicy: gpuv1alpha1.RestartGang,
			RetryPolicy: gpuv1alpha1.RetryPolicy{MaxRetries: ptr.To[int32](2), BackoffSeconds: ptr.To[int32](10)},
		},
	}
	for _, edit := range edits {
		edit(w)
	}
	return w
}

func gpus(name string, n int64) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceName(name): *resource.NewQuantity(n, resource.DecimalSI)}}
}

func withContainers(cs ...corev1.Container) func(*gpuv1alpha1.GPUWorkload) {
	return func(w *gpuv1alpha1.GPUWorkload) {
		w.Spec.Template = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: cs}}
	}
}

func TestDefaultTemplateRunsTheDefaultImageWithTheModel(t *testing.T) {
	pod, err := podTemplate(testWorkload(), "image:1")
	if err != nil {
		t.Fatal(err)
	}
	c := pod.Spec.Containers[0]
	limit := c.Resources.Limits["nvidia.com/gpu"]
	switch {
	case c.Image != "image:1" || len(c.Env) != 1 || c.Env[0] != (corev1.EnvVar{Name: "MODEL_NAME", Value: "llama2"}):
		t.Errorf("container %+v", c)
	case limit.Value() != 2 || pod.Spec.RestartPolicy != corev1.RestartPolicyNever:
		t.Errorf("%s GPUs, restart policy %s", limit.String(), pod.Spec.RestartPolicy)
	case len(pod.Spec.SchedulingGates) != 1 || pod.Labels[gpuv1alpha1.WorkloadUIDLabel] == "" || pod.Labels[gpuv1alpha1.AttemptLabel] != "0":
		t.Errorf("gates %v, labels %v", pod.Spec.SchedulingGates, pod.Labels)
	}
}

func TestTemplateIsKeptAndCompleted(t *testing.T) {
	w := testWorkload(withContainers(
		corev1.Container{Name: "sidecar"},
		corev1.Container{Name: "train", Env: []corev1.EnvVar{{Name: "MODEL_NAME", Value: "mine"}}, Resources: gpus("nvidia.com/gpu", 2)},
	), func(w *gpuv1alpha1.GPUWorkload) {
		w.Spec.SchedulerName, w.Spec.PriorityClassName = "other", "urgent"
		w.Spec.Template.Labels = map[string]string{"team": "a"}
		w.Spec.Template.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/quota"}}
	})
	before := w.DeepCopy()
	pod, err := podTemplate(w, "unused")
	if err != nil {
		t.Fatal(err)
	}
	if len(pod.Spec.Containers[0].Resources.Limits) > 0 || len(pod.Spec.Containers[1].Env) != 1 {
		t.Error("the sidecar got GPUs, or MODEL_NAME was overwritten")
	}
	if pod.Spec.SchedulerName != "other" || pod.Spec.PriorityClassName != "urgent" || pod.Labels["team"] != "a" || len(pod.Spec.SchedulingGates) != 2 {
		t.Errorf("%+v", pod)
	}
	if !equality.Semantic.DeepEqual(w, before) {
		t.Error("building the template changed the workload")
	}
}

func TestTemplatesThatCannotRun(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*gpuv1alpha1.GPUWorkload)
		says string
	}{
		"no containers":      {withContainers(), "add one, or leave the template out"},
		"two GPU containers": {withContainers(corev1.Container{Name: "a", Resources: gpus("nvidia.com/gpu", 2)}, corev1.Container{Name: "b", Resources: gpus("nvidia.com/gpu", 2)}), `"a" and "b" both ask`},
		"another number":     {withContainers(corev1.Container{Name: "a", Resources: gpus("nvidia.com/gpu", 4)}), "asks for 4 nvidia.com/gpu, gpuCount says 2"},
		"another vendor":     {withContainers(corev1.Container{Name: "a", Resources: gpus("amd.com/gpu", 2)}), "spec.gpu.resourceName says nvidia.com/gpu"},
		"a MIG instance":     {withContainers(corev1.Container{Name: "a", Resources: gpus("nvidia.com/mig-1g.10gb", 2)}), "make them the same"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := podTemplate(testWorkload(c.edit), "image")
			var invalid *state.InvalidError
			if !errors.As(err, &invalid) || !strings.Contains(err.Error(), c.says) || invalid.Field != "spec.template.spec.containers" {
				t.Errorf("got %v", err)
			}
		})
	}
}

// Whatever the workload is called, its Job's pods get host names that are legal, and no two
// workloads or attempts share a Job.
func TestJobNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := testWorkload()
		w.Name = rapid.StringMatching(`[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?`).Draw(t, "name")
		w.UID = types.UID(rapid.StringN(1, 36, 36).Draw(t, "uid"))
		w.Status.Attempt = rapid.Int32Range(0, 1<<20).Draw(t, "attempt")
		name := jobName(w)
		if problems := validation.IsDNS1123Label(name + "-10000"); len(problems) > 0 {
			t.Fatalf("%s: %v", name, problems)
		}
		next := w.DeepCopy()
		next.Status.Attempt++
		if jobName(next) == name || jobName(w) != name {
			t.Fatalf("%s is not the name of this attempt alone", name)
		}
	})
}

func TestPinningNarrowsEveryTerm(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		SchedulingGates: []corev1.PodSchedulingGate{{Name: gpuv1alpha1.SchedulingGate}, {Name: "example.com/quota"}},
		Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{
				{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "a", Operator: corev1.NodeSelectorOpExists}}},
				{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "b", Operator: corev1.NodeSelectorOpExists}}},
			},
		}}},
	}}
	pin(pod, "node-1")
	if state.PlannedNode(pod) != "node-1" {
		t.Errorf("a term leaves the pod another node: %+v", pod.Spec.Affinity.NodeAffinity)
	}
	if len(pod.Spec.SchedulingGates) != 1 || pod.Spec.SchedulingGates[0].Name != "example.com/quota" {
		t.Errorf("gates %v: ours goes, others stay", pod.Spec.SchedulingGates)
	}
	bare := &corev1.Pod{}
	pin(bare, "node-2")
	if state.PlannedNode(bare) != "node-2" || bare.Annotations[gpuv1alpha1.PlannedNodeAnnotation] != "node-2" {
		t.Errorf("%+v", bare)
	}
}

// gangPass is a pass over a gang of four whose pods are in the given states.
func gangPass(states ...string) *pass {
	w := testWorkload()
	w.Status.Pods.Desired = 4
	w.Status.AssignedNodes, w.Status.AssignedNode = []string{"n1", "n2"}, "n1"
	w.Status.JobName = "job"
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	w.Status.LastScheduleTime = &metav1.Time{Time: now}
	p := &pass{now: now, workload: w, job: &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "job", UID: "job"}}}
	for rank, s := range states {
		if s == "none" {
			continue
		}
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("pod-%d", rank), UID: types.UID(fmt.Sprint(rank)),
			Annotations:     map[string]string{batchv1.JobCompletionIndexAnnotation: fmt.Sprint(rank)},
			OwnerReferences: []metav1.OwnerReference{{UID: "job", Kind: "Job", Controller: ptr.To(true)}},
		}}
		switch s {
		case "pending":
		case "bound":
			pod.Spec.NodeName = "n1"
		case "running":
			pod.Spec.NodeName, pod.Status.Phase = "n1", corev1.PodRunning
		case "succeeded":
			pod.Spec.NodeName, pod.Status.Phase = "n1", corev1.PodSucceeded
		case "failed":
			pod.Spec.NodeName, pod.Status.Phase = "n1", corev1.PodFailed
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "train", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}}}}
		}
		p.pods = append(p.pods, pod)
	}
	p.before = *w.Status.DeepCopy()
	return p
}

func TestPhaseFollowsThePods(t *testing.T) {
	for _, c := range []struct {
		pods  []string
		phase gpuv1alpha1.WorkloadPhase
		says  string
	}{
		{[]string{"none", "none", "none", "none"}, gpuv1alpha1.PhaseScheduling, ""},
		{[]string{"pending", "pending", "pending", "pending"}, gpuv1alpha1.PhaseScheduling, ""},
		{[]string{"bound", "running", "pending", "pending"}, gpuv1alpha1.PhaseScheduling, "2 of 4 pods bound"},
		{[]string{"bound", "bound", "bound", "bound"}, gpuv1alpha1.PhaseScheduled, "bound to 2 nodes; 0 of 4 pods run"},
		{[]string{"running", "running", "running", "bound"}, gpuv1alpha1.PhaseScheduled, "3 of 4 pods run"},
		{[]string{"running", "running", "running", "running"}, gpuv1alpha1.PhaseRunning, "running on 2 nodes"},
		{[]string{"running", "succeeded", "running", "running"}, gpuv1alpha1.PhaseRunning, "1 of 4 pods succeeded"},
		{[]string{"succeeded", "succeeded", "succeeded", "succeeded"}, gpuv1alpha1.PhaseRunning, "4 of 4 pods succeeded"},
	} {
		t.Run(strings.Join(c.pods, " "), func(t *testing.T) {
			p := gangPass(c.pods...)
			if _, err := (&Reconciler{}).observe(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			s := p.status()
			if s.Phase != c.phase || !strings.Contains(s.Message, c.says) {
				t.Errorf("%s: %s", s.Phase, s.Message)
			}
			if whole := s.Phase != gpuv1alpha1.PhaseScheduling; whole != scheduled(s) || whole != (s.StartTime != nil) {
				t.Errorf("in phase %s Scheduled is %v and the start %v", s.Phase, scheduled(s), s.StartTime)
			}
		})
	}
}

func TestFailedMemberKeepsThePhaseUntilTheGangIsDown(t *testing.T) {
	p := gangPass("running", "failed", "running", "running")
	p.status().Phase = gpuv1alpha1.PhaseRunning
	if _, err := (&Reconciler{}).observe(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	const want = "pod pod-1 (rank 1) on n1 failed: container train exited with code 137 (OOMKilled); stopping the rest of the gang"
	if p.status().Phase != gpuv1alpha1.PhaseRunning || p.status().Message != want {
		t.Errorf("%s: %s", p.status().Phase, p.status().Message)
	}
}

func TestFailuresAreRetriedUntilTheRetriesAreUsedUp(t *testing.T) {
	r := &Reconciler{}
	p := gangPass("failed", "running", "running", "running")
	for retry := int32(1); retry <= 2; retry++ {
		r.failed(p, "job failed")
		s := p.status()
		if s.Phase != gpuv1alpha1.PhasePending || s.RetryCount != retry || s.Attempt != retry || s.NextRetryTime == nil {
			t.Fatalf("after failure %d: %+v", retry, s)
		}
		wait, base := s.NextRetryTime.Sub(p.now), time.Duration(10<<(retry-1))*time.Second
		if wait < base || wait > base*11/10 || p.after == 0 || p.after > wait {
			t.Errorf("retry %d comes after %s (looked at again after %s), want %s + 0-10 %%", retry, wait, p.after, base)
		}
		p.job = &batchv1.Job{ObjectMeta: metav1.ObjectMeta{UID: "job"}}
		p.after = 0
	}
	r.failed(p, "job failed")
	if s := p.status(); s.Phase != gpuv1alpha1.PhaseFailed || s.RetryCount != 2 || s.CompletionTime == nil || finishReason(s) != "RetriesExhausted" || !strings.Contains(s.Message, "failed after 2 retries: pod pod-0 (rank 0) on n1 failed") {
		t.Errorf("%+v", p.status())
	}
}

func TestNoRetriesFailsAtOnce(t *testing.T) {
	p := gangPass("failed")
	p.workload.Spec.RetryPolicy.MaxRetries = ptr.To[int32](0)
	(&Reconciler{}).failed(p, "")
	if p.status().Phase != gpuv1alpha1.PhaseFailed || p.status().RetryCount != 0 {
		t.Errorf("%+v", p.status())
	}
}

func TestWaitingWorkloadsAreWokenByPriority(t *testing.T) {
	order := []gpuv1alpha1.WorkloadPriority{gpuv1alpha1.PriorityLow, gpuv1alpha1.PriorityMedium, gpuv1alpha1.PriorityHigh, gpuv1alpha1.PriorityCritical}
	for i := 1; i < len(order); i++ {
		low, high := testWorkload(), testWorkload()
		low.Spec.Priority, high.Spec.Priority = order[i-1], order[i]
		if priorityOf(low) >= priorityOf(high) || priorityOf(high) >= queueProgress {
			t.Errorf("%s is not before %s, or before work in progress", order[i], order[i-1])
		}
	}
	none := testWorkload()
	if medium := testWorkload(func(w *gpuv1alpha1.GPUWorkload) { w.Spec.Priority = gpuv1alpha1.PriorityMedium }); priorityOf(none) != priorityOf(medium) {
		t.Error("no priority is not medium")
	}
}

// News that comes while a worker looks at a workload wakes it again; news that comes while it
// stands in the queue does not.
func TestNoWakeUpIsLost(t *testing.T) {
	w, key := newWaker(func(int) {}), types.NamespacedName{Name: "w"}
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
	defer q.ShutDown()
	w.queue = q
	w.wait(key, 10, false)
	w.freed()
	w.freed()
	req, _ := q.Get()
	w.look(key)
	w.freed() // room appears after the worker has looked for it
	w.looked(key)
	w.wait(key, 10, false)
	q.Done(req)
	if again, _ := q.Get(); again != req {
		t.Errorf("got %v", again)
	}
	q.Done(req)
	w.look(key)
	w.looked(key)
	if q.Len() != 0 {
		t.Errorf("%d left in the queue: it was woken twice and came three times", q.Len())
	}
}

func TestAvoidedNodesAreForgottenInTime(t *testing.T) {
	a, now := newAvoidList(), time.Now()
	a.add("w", "n1", now.Add(time.Minute))
	a.add("w", "n2", now.Add(time.Hour))
	if got := a.nodes("w", now); len(got) != 2 {
		t.Errorf("avoided %v", got)
	}
	if got := a.nodes("w", now.Add(time.Minute)); len(got) != 1 || got[0] != "n2" {
		t.Errorf("after a minute avoided %v", got)
	}
	if got := a.nodes("other", now); got != nil {
		t.Errorf("another workload avoids %v", got)
	}
	a.forget("w")
	if got := a.nodes("w", now); got != nil {
		t.Errorf("avoided after all was forgotten: %v", got)
	}
}

func TestNobodyIsPlannedBeforeAMoreImportantWorkloadThatWasWoken(t *testing.T) {
	w := newWaker(func(int) {})
	w.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
	low, high := types.NamespacedName{Name: "low"}, types.NamespacedName{Name: "high"}
	w.wait(low, 10, false)
	w.wait(high, 30, false)
	if w.outranked(10) {
		t.Error("outranked although nobody was woken")
	}
	w.freed()
	w.freed()
	if !w.outranked(10) || !w.outranked(20) || w.outranked(30) {
		t.Error("the most important one is due: only it may be planned")
	}
	w.look(high)
	w.freed() // while it is looked at: it stands in the queue again
	w.looked(high)
	if !w.outranked(10) {
		t.Error("news came while it was looked at: it is due still")
	}
	w.look(high)
	w.looked(high)
	w.looked(high)
	if w.outranked(10) {
		t.Error("it was looked at: others may be planned")
	}
	w.freed()
	w.done(high)
	if w.outranked(10) {
		t.Error("it waits no more: others may be planned")
	}
	// What would not fit if nothing ran is in nobody's way, and only a node can help it.
	w.wait(high, 30, true)
	w.better()
	if w.outranked(20) {
		t.Error("what never fits keeps others from being planned")
	}
}
