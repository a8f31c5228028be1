package extender

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	"pgregory.net/rapid"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

// bind asks for a binding and returns the error that the extender gives kube-scheduler.
func (w *world) bind(t testing.TB, pod *corev1.Pod, node string) string {
	t.Helper()
	var r extenderv1.ExtenderBindingResult
	args := extenderv1.ExtenderBindingArgs{PodName: pod.Name, PodNamespace: pod.Namespace, PodUID: pod.UID, Node: node}
	if code, text := w.post(t, verbBind, args, &r); code != 200 {
		t.Fatalf("bind of %s: %d %s", pod.Name, code, text)
	}
	return r.Error
}

func (w *world) nodeOf(name string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pods[types.NamespacedName{Namespace: "ns", Name: name}].Spec.NodeName
}

func TestBindLooksOnceMore(t *testing.T) {
	w := newWorld(t).node("l1", "a", 8).node("l1", "b", 8)
	w.lag = true // What this replica wrote it knows all the same.
	p, q := w.pod("p", 8), w.pod("q", 8)
	if problem := w.bind(t, p, "a"); problem != "" || w.nodeOf("p") != "a" {
		t.Fatalf("p is on %q: %s", w.nodeOf("p"), problem)
	}
	if problem := w.bind(t, q, "a"); !strings.Contains(problem, "does not take pod ns/q any more") || w.nodeOf("q") != "" {
		t.Errorf("q is on %q: %q", w.nodeOf("q"), problem)
	}
	if problem := w.bind(t, p, "a"); problem != "" {
		t.Errorf("asked again: %q", problem)
	}
	if problem := w.bind(t, p, "b"); problem == "" || w.nodeOf("p") != "a" {
		t.Errorf("asked for another node: %q", problem)
	}
	w.show()
	if problem := w.bind(t, p, "a"); problem != "" {
		t.Errorf("asked again when it is shown: %q", problem)
	}
	if problem := w.bind(t, q, "unknown"); !strings.Contains(problem, "not known") {
		t.Errorf("to an unknown node: %q", problem)
	}
	again := q.DeepCopy()
	again.UID = "another"
	if problem := w.bind(t, again, "b"); !strings.Contains(problem, "not known") || w.nodeOf("q") != "" {
		t.Errorf("another pod of the same name: %q", problem)
	}
}

func TestBindThatFailsGivesTheRoomBack(t *testing.T) {
	w := newWorld(t).node("l1", "a", 8)
	w.refuse = errors.New("the API server is away")
	if problem := w.bind(t, w.pod("p", 8), "a"); !strings.Contains(problem, "is away") {
		t.Errorf("got %q", problem)
	}
	w.refuse = nil
	if problem := w.bind(t, w.pod("q", 8), "a"); problem != "" {
		t.Errorf("the next one: %q", problem)
	}
}

// A pod that was bound and deleted before the informers showed it does not hold its room for ever.
func TestBindingsThatNeverShowAreForgotten(t *testing.T) {
	w := newWorld(t).node("l1", "a", 8)
	w.lag = true
	p := w.pod("p", 8)
	if problem := w.bind(t, p, "a"); problem != "" {
		t.Fatal(problem)
	}
	w.state.DropPod(p.UID)
	q := w.pod("q", 8)
	if r := w.filtered(t, q, "a"); len(*r.NodeNames) != 0 {
		t.Error("the room is given away at once")
	}
	w.clock.Step(shownWithin + 1)
	if r := w.filtered(t, q, "a"); len(*r.NodeNames) != 1 {
		t.Errorf("the room is held for ever: %v", r.FailedNodes)
	}
}

// drawnGangs plays a kube-scheduler that knows nothing of gangs or of room: it takes any node that
// it is offered, binds later, and the informers show it later still. It returns what went wrong.
func drawnGangs(t *rapid.T, tb testing.TB, bind func(*world, *corev1.Pod, string)) string {
	w := newWorld(tb)
	w.lag = true
	var names []string
	for l := range rapid.IntRange(1, 3).Draw(t, "leaves") {
		for n := range rapid.IntRange(1, 3).Draw(t, "nodes") {
			name := fmt.Sprintf("l%dn%d", l, n)
			w.node(fmt.Sprintf("l%d", l), name, 4)
			names = append(names, name)
		}
	}
	var waiting []*corev1.Pod
	for g := range rapid.IntRange(1, 3).Draw(t, "gangs") {
		size, gpus := rapid.IntRange(1, 4).Draw(t, "size"), rapid.SampledFrom([]int64{1, 2, 4}).Draw(t, "gpus")
		for i := range size {
			waiting = append(waiting, w.pod(fmt.Sprintf("g%d-%d", g, i), gpus, gang(fmt.Sprintf("g%d", g), size), inOneLeaf))
		}
	}
	type choice struct {
		pod  *corev1.Pod
		node string
	}
	var chosen []choice
	for range rapid.IntRange(1, 40).Draw(t, "steps") {
		switch rapid.SampledFrom([]string{"choose", "choose", "bind", "bind", "show"}).Draw(t, "what") {
		case "choose":
			if len(waiting) == 0 {
				continue
			}
			i := rapid.IntRange(0, len(waiting)-1).Draw(t, "pod")
			if offered := *w.filtered(tb, waiting[i], names...).NodeNames; len(offered) > 0 {
				chosen = append(chosen, choice{waiting[i], rapid.SampledFrom(offered).Draw(t, "node")})
				waiting = slices.Delete(waiting, i, i+1)
			}
		case "bind":
			if len(chosen) == 0 {
				continue
			}
			i := rapid.IntRange(0, len(chosen)-1).Draw(t, "choice")
			bind(w, chosen[i].pod, chosen[i].node)
			if w.nodeOf(chosen[i].pod.Name) == "" {
				waiting = append(waiting, chosen[i].pod)
			}
			chosen = slices.Delete(chosen, i, i+1)
		case "show":
			w.show()
		}
		if problem := w.wrong(); problem != "" {
			return problem
		}
	}
	return ""
}

// wrong returns what is wrong with the world: a gang in two leaves, or a node with more GPUs in use
// than it has. It reads the pods alone.
func (w *world) wrong() string {
	used, leafOf := map[string]int64{}, map[string]string{}
	for _, p := range w.pods {
		node := p.Spec.NodeName
		if node == "" {
			continue
		}
		q := p.Spec.Containers[0].Resources.Requests["nvidia.com/gpu"]
		if used[node] += q.Value(); used[node] > 4 {
			return fmt.Sprintf("%d of 4 GPUs of %s are in use", used[node], node)
		}
		g, leaf := p.Labels[gpuv1alpha1.GangLabel], node[:2]
		if other := leafOf[g]; other != "" && other != leaf {
			return fmt.Sprintf("gang %s is in %s and %s", g, leaf, other)
		}
		leafOf[g] = leaf
	}
	return ""
}

func TestGangsStayInOneLeafAndNodesWhole(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		if problem := drawnGangs(r, t, func(w *world, p *corev1.Pod, node string) { w.bind(t, p, node) }); problem != "" {
			r.Fatal(problem)
		}
	})
}

// What the second look at /bind is for: without it, and for a replica that forgets what it wrote,
// the property does not hold.
func TestBindPropertyFindsMistakes(t *testing.T) {
	for name, broken := range map[string]func(*world, *corev1.Pod, string){
		"binding without a look": func(w *world, p *corev1.Pod, node string) {
			b := &corev1.Binding{Target: corev1.ObjectReference{Name: node}}
			b.Namespace, b.Name, b.UID = p.Namespace, p.Name, p.UID
			_ = w.Bind(t.Context(), b)
		},
		"forgetting what was written": func(w *world, p *corev1.Pod, node string) {
			w.bind(t, p, node)
			w.engine.release(p.UID)
		},
	} {
		t.Run(name, func(t *testing.T) {
			found := false
			for seed := 0; seed < 300 && !found; seed++ {
				rapid.Custom(func(r *rapid.T) bool {
					found = drawnGangs(r, t, broken) != ""
					return true
				}).Example(seed)
			}
			if !found {
				t.Error("the property holds for a binder that is broken")
			}
		})
	}
}
