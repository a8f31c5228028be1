package kwok

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/config"
	"sigs.k8s.io/kwok/pkg/utils/gotpl"
	"sigs.k8s.io/kwok/pkg/utils/lifecycle"
)

// engine plays stages as KWOK's controllers do, one step at a time.
type engine struct {
	t        *testing.T
	stages   lifecycle.Lifecycle
	renderer gotpl.Renderer
}

func newEngine(t *testing.T, kind string) *engine {
	t.Helper()
	path, err := WriteConfig(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	objects, err := config.Load(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	var ofKind []*internalversion.Stage
	for _, stage := range config.FilterWithType[*internalversion.Stage](objects) {
		if stage.Spec.ResourceRef.Kind == kind {
			ofKind = append(ofKind, stage)
		}
	}
	if len(ofKind) == 0 {
		t.Fatalf("there is no stage for %s", kind)
	}
	stages, err := lifecycle.NewLifecycle(ofKind)
	if err != nil {
		t.Fatal(err)
	}
	addresses := func(...any) []string { return []string{"11.0.0.1"} }
	return &engine{t: t, stages: stages, renderer: gotpl.NewRenderer(gotpl.FuncMap{"NodeIPsWith": addresses, "PodIPsWith": addresses})}
}

// next returns the stage that KWOK would play now and its delay, or an empty name.
func (e *engine) next(meta metav1.ObjectMeta, object any) (*lifecycle.Stage, time.Duration) {
	e.t.Helper()
	event := &lifecycle.Event{Labels: meta.Labels, Annotations: meta.Annotations, Data: object}
	stage, err := e.stages.Match(context.Background(), event)
	if err != nil {
		e.t.Fatal(err)
	}
	if stage == nil {
		return nil, 0
	}
	delay, _, err := stage.Delay(context.Background(), event, time.Now())
	if err != nil {
		e.t.Fatal(err)
	}
	return stage, delay
}

// play plays the stage and tells whether it deleted the object.
func play[T any](e *engine, stage *lifecycle.Stage, object T) (after T, deleted bool) {
	e.t.Helper()
	after = object
	_, err := stage.DoSteps(0, nil, object, e.renderer,
		func(*internalversion.StageEvent) error { return nil },
		func() error { deleted = true; return nil },
		func(p *lifecycle.Patch) error {
			if p.Type != types.StrategicMergePatchType || p.Subresource != "status" {
				e.t.Errorf("stage %s patches %q by %s", stage.Name(), p.Subresource, p.Type)
			}
			before, err := json.Marshal(after)
			if err != nil {
				return err
			}
			patched, err := strategicpatch.StrategicMergePatch(before, p.Data, after)
			if err != nil {
				return err
			}
			var fresh T
			after = fresh
			return json.Unmarshal(patched, &after)
		},
		func(*lifecycle.Apply) error { return nil })
	if err != nil {
		e.t.Fatal(err)
	}
	return after, deleted
}

// pod is bound and has not started.
func pod(annotations map[string]string) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "p", Namespace: "default", UID: "u", Annotations: annotations,
			Labels:          map[string]string{"gpu.warp.dev/attempt": "1", "batch.kubernetes.io/job-completion-index": "2"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "Job", Name: "j"}},
		},
		Spec: corev1.PodSpec{
			NodeName: "gpu-node-0001",
			Containers: []corev1.Container{
				{Name: "main", Image: "example.com/train"},
				{Name: "exporter", Image: "example.com/exporter"},
			},
		},
		Status: corev1.PodStatus{
			Phase:      corev1.PodPending,
			Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}},
		},
	}
}

func (e *engine) nextPod(p corev1.Pod, want string) (*lifecycle.Stage, time.Duration) {
	e.t.Helper()
	stage, delay := e.next(p.ObjectMeta, &p)
	got := ""
	if stage != nil {
		got = stage.Name()
	}
	if got != want {
		e.t.Fatalf("the next stage of a %s pod is %q, want %q", p.Status.Phase, got, want)
	}
	return stage, delay
}

func (e *engine) run(p corev1.Pod) corev1.Pod {
	e.t.Helper()
	stage, _ := e.nextPod(p, "pod-start")
	p, _ = play(e, stage, p)
	return p
}

func TestPodRunsForItsTimeAndSucceeds(t *testing.T) {
	for name, c := range map[string]struct {
		annotations map[string]string
		start, run  time.Duration
	}{
		"by default":     {nil, 500 * time.Millisecond, 5 * time.Second},
		"as annotated":   {map[string]string{"sandbox.gpu.warp.dev/run-for": "1h2m3s"}, 500 * time.Millisecond, 3723 * time.Second},
		"under a second": {map[string]string{"sandbox.gpu.warp.dev/run-for": "300ms"}, 500 * time.Millisecond, 300 * time.Millisecond},
		"after a pause":  {map[string]string{"sandbox.gpu.warp.dev/start-after": "1.5s"}, 1500 * time.Millisecond, 5 * time.Second},
		"at once":        {map[string]string{"sandbox.gpu.warp.dev/start-after": "0s"}, 0, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t, "Pod")
			p := pod(c.annotations)
			stage, delay := e.nextPod(p, "pod-start")
			if delay != c.start {
				t.Errorf("it starts after %s, want %s", delay, c.start)
			}
			p, _ = play(e, stage, p)
			if p.Status.Phase != corev1.PodRunning || p.Status.StartTime == nil || p.Status.PodIP == "" {
				t.Fatalf("it started as %+v", p.Status)
			}
			for i, s := range p.Status.ContainerStatuses {
				if s.Name != p.Spec.Containers[i].Name || !s.Ready || s.State.Running == nil {
					t.Errorf("container %d is %+v", i, s)
				}
			}
			if !has(p, corev1.PodReady, corev1.ConditionTrue) || !has(p, corev1.PodScheduled, corev1.ConditionTrue) {
				t.Errorf("its conditions are %+v", p.Status.Conditions)
			}

			// An update in between must not set the clock back.
			p.Labels["touched"] = "true"
			stage, delay = e.nextPod(p, "pod-end")
			if delay > c.run || delay < c.run-200*time.Millisecond {
				t.Errorf("it runs for another %s, want %s", delay, c.run)
			}
			p, _ = play(e, stage, p)
			if p.Status.Phase != corev1.PodSucceeded || !has(p, corev1.PodReady, corev1.ConditionFalse) {
				t.Errorf("it ended as %+v", p.Status)
			}
			for _, s := range p.Status.ContainerStatuses {
				if s.State.Running != nil || s.State.Terminated == nil || s.State.Terminated.ExitCode != 0 {
					t.Errorf("container %s ended as %+v", s.Name, s.State)
				}
			}
			e.nextPod(p, "")
		})
	}
}

func has(p corev1.Pod, kind corev1.PodConditionType, status corev1.ConditionStatus) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == kind {
			return c.Status == status
		}
	}
	return false
}

func TestPodOfNoJobRunsForEver(t *testing.T) {
	e := newEngine(t, "Pod")
	p := pod(nil)
	p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "r"}}
	e.nextPod(e.run(p), "")

	p.Annotations = map[string]string{"sandbox.gpu.warp.dev/run-for": "1s"}
	e.nextPod(e.run(p), "pod-end")
}

func TestPodFailsOnRequest(t *testing.T) {
	const fail, attempts, index = "sandbox.gpu.warp.dev/fail", "sandbox.gpu.warp.dev/fail-attempts", "sandbox.gpu.warp.dev/fail-index"
	// The pod is of attempt 1 and has index 2.
	for name, c := range map[string]struct {
		annotations map[string]string
		fails       bool
	}{
		"asked to":                        {map[string]string{fail: "true"}, true},
		"asked not to":                    {map[string]string{fail: "false", attempts: "9"}, false},
		"in an early attempt":             {map[string]string{attempts: "2"}, true},
		"in a late attempt":               {map[string]string{attempts: "1"}, false},
		"with this index":                 {map[string]string{index: "2"}, true},
		"with another index":              {map[string]string{index: "1"}, false},
		"early and with another index":    {map[string]string{attempts: "2", index: "1"}, false},
		"asked to, but in a late attempt": {map[string]string{fail: "true", attempts: "1"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t, "Pod")
			p := e.run(pod(c.annotations))
			stage, _ := e.nextPod(p, "pod-end")
			p, _ = play(e, stage, p)
			want, code := corev1.PodSucceeded, int32(0)
			if c.fails {
				want, code = corev1.PodFailed, 1
			}
			if p.Status.Phase != want || p.Status.ContainerStatuses[0].State.Terminated.ExitCode != code {
				t.Errorf("it ended %s with %+v, want %s", p.Status.Phase, p.Status.ContainerStatuses[0].State.Terminated, want)
			}
		})
	}
}

func TestPodWithABadAnnotationWaitsAndSaysWhy(t *testing.T) {
	for annotation, value := range map[string]string{
		"run-for": "five minutes", "start-after": "-1s", "fail": "yes", "fail-attempts": "-1", "fail-index": "x",
	} {
		t.Run(annotation, func(t *testing.T) {
			e := newEngine(t, "Pod")
			p := e.run(pod(map[string]string{"sandbox.gpu.warp.dev/" + annotation: value}))
			if p.Status.Phase != corev1.PodPending {
				t.Fatalf("it is %s", p.Status.Phase)
			}
			if w := p.Status.ContainerStatuses[0].State.Waiting; w == nil || w.Reason != "CreateContainerConfigError" || w.Message == "" {
				t.Errorf("its container is %+v", p.Status.ContainerStatuses[0].State)
			}
			// Mended, it starts.
			delete(p.Annotations, "sandbox.gpu.warp.dev/"+annotation)
			p = e.run(p)
			if s := p.Status.ContainerStatuses[0].State; p.Status.Phase != corev1.PodRunning || s.Waiting != nil {
				t.Errorf("mended, it is %s: %+v", p.Status.Phase, s)
			}
		})
	}
}

func TestDeletedPodEndsAndIsGone(t *testing.T) {
	e := newEngine(t, "Pod")
	for name, p := range map[string]corev1.Pod{"pending": pod(nil), "running": e.run(pod(nil))} {
		t.Run(name, func(t *testing.T) {
			p.DeletionTimestamp = &metav1.Time{Time: time.Now()}
			stage, delay := e.nextPod(p, "pod-terminate")
			p, deleted := play(e, stage, p)
			if p.Status.Phase != corev1.PodFailed || deleted || delay != 0 {
				t.Errorf("it became %s after %s, deleted: %v", p.Status.Phase, delay, deleted)
			}
			stage, delay = e.nextPod(p, "pod-delete")
			if _, deleted := play(e, stage, p); !deleted || delay != 0 {
				t.Errorf("it was deleted: %v, after %s", deleted, delay)
			}
		})
	}
}

func TestNodeBecomesReadyAndLosesItOnRequest(t *testing.T) {
	e := newEngine(t, "Node")
	node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	ready := func() corev1.ConditionStatus {
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady {
				return c.Status
			}
		}
		return corev1.ConditionUnknown
	}
	step := func(want string) {
		t.Helper()
		stage, _ := e.next(node.ObjectMeta, &node)
		if stage == nil || stage.Name() != want {
			t.Fatalf("the next stage is %+v, want %s", stage, want)
		}
		node, _ = play(e, stage, node)
	}
	settled := func() {
		t.Helper()
		if stage, _ := e.next(node.ObjectMeta, &node); stage != nil {
			t.Fatalf("stage %s is played again", stage.Name())
		}
	}

	step("node-ready")
	settled()
	if ready() != corev1.ConditionTrue {
		t.Errorf("a new node is %s", ready())
	}
	node.Labels = map[string]string{"sandbox.gpu.warp.dev/not-ready": "true"}
	step("node-not-ready")
	settled()
	if ready() != corev1.ConditionFalse {
		t.Errorf("a labelled node is %s", ready())
	}
	node.Labels = nil
	step("node-ready")
	settled()
	if ready() != corev1.ConditionTrue {
		t.Errorf("a node whose label is gone is %s", ready())
	}
}
