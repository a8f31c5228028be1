package manager

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
	"github.com/reyisjones/gpu-orchestrator/internal/controller"
	"github.com/reyisjones/gpu-orchestrator/internal/policy"
	"github.com/reyisjones/gpu-orchestrator/internal/sim"
	"github.com/reyisjones/gpu-orchestrator/internal/state"
)

func pick[T any](t *rapid.T, label string, of ...T) T { return rapid.SampledFrom(of).Draw(t, label) }

func drawnNode(t *rapid.T, name string) *corev1.Node {
	list := corev1.ResourceList{
		"cpu": resource.MustParse(pick(t, "cpu", "8", "63500m")), "memory": resource.MustParse("64Gi"), "pods": resource.MustParse("6"),
		"ephemeral-storage": resource.MustParse("100Gi"),
	}
	if gpus := pick(t, "gpus", int64(0), 2, 4, 8, 8); gpus > 0 {
		list["nvidia.com/gpu"] = *resource.NewQuantity(gpus, resource.DecimalSI)
	}
	labels := map[string]string{"kubernetes.io/hostname": name}
	add := func(key string, values ...string) {
		if v := pick(t, key, values...); v != "" {
			labels[key] = v
		}
	}
	add("gpu.warp.dev/spine", "s1", "s1", "s2")
	add("gpu.warp.dev/leaf", "l1", "l2", "l3", "")
	add("nvidia.com/gpu.product", "NVIDIA-H100-80GB-HBM3", "NVIDIA-A100-SXM4-40GB", "")
	add("nvidia.com/gpu.memory", "81559", "40960", "")
	add("pool", "a", "b", "")
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec:       corev1.NodeSpec{Unschedulable: pick(t, "cordoned", false, false, false, true)},
		Status: corev1.NodeStatus{Allocatable: list, Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: pick(t, "ready", corev1.ConditionTrue, corev1.ConditionTrue, corev1.ConditionFalse)},
		}},
	}
	if pick(t, "tainted", false, false, true) {
		n.Spec.Taints = []corev1.Taint{{Key: "nvidia.com/gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule}}
	}
	return n
}

func drawnAsk(t *rapid.T) *gpuv1alpha1.GPUWorkload {
	w := &gpuv1alpha1.GPUWorkload{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "job.v1", UID: "job"},
		Spec: gpuv1alpha1.GPUWorkloadSpec{
			ModelName: "m", GPUCount: rapid.Int32Range(1, 5).Draw(t, "GPUs asked for"), Parallelism: rapid.Int32Range(1, 6).Draw(t, "pods"),
			SchedulingStrategy: pick(t, "strategy", "", "leastLoaded", "binPack", "topologyAware", "topologyAware", "fragmentationAware", "costOptimized"),
			Priority:           pick(t, "priority", gpuv1alpha1.PriorityLow, gpuv1alpha1.PriorityCritical),
		},
	}
	if pick(t, "elastic", false, true) {
		w.Spec.MinParallelism = ptr.To(int32(1))
	}
	switch pick(t, "topology", "", "required", "preferred", "slice") {
	case "required":
		w.Spec.Topology = &gpuv1alpha1.TopologyRequirements{Required: pick(t, "level", "region", "spine", "leaf", "host")}
	case "preferred":
		w.Spec.Topology = &gpuv1alpha1.TopologyRequirements{Required: pick(t, "level", "", "spine"), Preferred: pick(t, "preferred", "leaf", "rack", "host")}
	case "slice":
		w.Spec.Parallelism = 4
		w.Spec.Topology = &gpuv1alpha1.TopologyRequirements{Slice: &gpuv1alpha1.TopologySlice{Size: 2, Level: pick(t, "level", "spine", "leaf", "host")}}
	}
	switch pick(t, "kind", "", "product", "memory", "other") {
	case "product":
		w.Spec.GPU = &gpuv1alpha1.GPURequirements{Product: "NVIDIA-H100-80GB-HBM3", TopologyPreference: pick(t, "prefer", "", gpuv1alpha1.TopologyNVLink)}
	case "memory":
		w.Spec.GPU = &gpuv1alpha1.GPURequirements{MinMemory: ptr.To(resource.MustParse("79Gi"))}
	case "other":
		w.Spec.GPU = &gpuv1alpha1.GPURequirements{ResourceName: "amd.com/gpu"}
	}
	if pick(t, "template", false, true) {
		spec := corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse("1500m"), "memory": resource.MustParse("3Gi")},
		}}}}
		if pick(t, "selects", false, true) {
			spec.NodeSelector = map[string]string{"pool": "a"}
		}
		if pick(t, "tolerates", false, true) {
			spec.Tolerations = []corev1.Toleration{{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists}}
		}
		if pick(t, "affinity", false, true) {
			selects := func(op corev1.NodeSelectorOperator) corev1.NodeSelectorTerm {
				return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "pool", Operator: op, Values: []string{"b"}}}}
			}
			spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{selects("NotIn")}},
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{
					{Weight: 10, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "pool", Operator: "Exists"}}}},
				},
			}}
		}
		w.Spec.Template = &corev1.PodTemplateSpec{Spec: spec}
	}
	return w
}

// drawnInsides draws what agents tell of some of the nodes.
func drawnInsides(t *rapid.T, tb testing.TB, s *state.State, pods []*corev1.Pod) {
	now := s.Snapshot()
	whole := now.Resources.Index("nvidia.com/gpu")
	for _, n := range now.Nodes() {
		if pick(t, "known inside", false, true) {
			drawnInside(t, tb, s, n.Name, int(n.Allocatable.At(whole)), pods)
		}
	}
}

// drawnInside draws more GPUs than the node offers, pairs that are bridged, and pods that hold
// some of them.
func drawnInside(t *rapid.T, tb testing.TB, s *state.State, node string, offered int, pods []*corev1.Pod) {
	n := &gpuv1alpha1.GPUNode{ObjectMeta: metav1.ObjectMeta{Name: node}}
	n.Status.Conditions = []metav1.Condition{{Type: gpuv1alpha1.ConditionReady, Status: metav1.ConditionTrue}}
	count := offered + pick(t, "more inside", 0, 0, 1)
	bridged, wired, located := pick(t, "bridged", false, true), pick(t, "wired", false, true), pick(t, "located", false, true)
	for i := range count {
		d := gpuv1alpha1.GPUDevice{Index: int32(i), Product: "NVIDIA-A100-SXM4-40GB", MemoryMiB: 40960}
		if i >= offered {
			d.Problem = "XID 79"
		}
		for j := range count {
			if bridged {
				d.NVLinks = append(d.NVLinks, map[bool]int32{i^1 == j: 12}[true])
			}
			class := gpuv1alpha1.PCIePath("SYS")
			switch {
			case i == j:
				class = "SELF"
			case i/2 == j/2:
				class = "PIX"
			}
			if wired {
				d.PCIe = append(d.PCIe, class)
			}
		}
		if located {
			d.NUMANode = ptr.To(int32(i / 4))
		}
		n.Status.GPUs = append(n.Status.GPUs, d)
	}
	// Of the pods that drawnPods draws, some hold what they ask for.
	next := int32(0)
	for _, p := range pods {
		asked := p.Spec.Containers[0].Resources.Requests["nvidia.com/gpu"]
		// Now and then an agent has not told of a pod yet, or tells of one that is gone.
		switch held := asked.Value(); {
		case p.Spec.NodeName != node || held == 0 || int(next)+int(held) > offered || pick(t, "silent", false, false, false, true):
		default:
			holder := gpuv1alpha1.GPUHolder{PodUID: string(p.UID)}
			for range held {
				holder.GPUs = append(holder.GPUs, next)
				next++
			}
			n.Status.Holders = append(n.Status.Holders, holder)
		}
	}
	if _, err := s.SetInventory(n); err != nil {
		tb.Fatal(err)
	}
}

// drawnPods draws daemons, pods of others, and, on full nodes, more than the node has.
func drawnPods(t *rapid.T, s *state.State, nodes int) (pods []*corev1.Pod) {
	for i := range rapid.IntRange(0, 12).Draw(t, "running") {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "others", Name: fmt.Sprintf("p%d", i), UID: types.UID(fmt.Sprintf("p%d", i))},
			Spec:       corev1.PodSpec{NodeName: fmt.Sprintf("n%d", rapid.IntRange(0, nodes-1).Draw(t, "on"))},
		}
		requests := corev1.ResourceList{"cpu": resource.MustParse("700m")}
		if gpus := rapid.Int64Range(0, 5).Draw(t, "held"); gpus > 0 {
			requests["nvidia.com/gpu"] = *resource.NewQuantity(gpus, resource.DecimalSI)
		}
		p.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: requests}}}
		s.SetPod(p)
		pods = append(pods, p)
	}
	return pods
}

// drawnPolicies is a book with a policy that holds for every workload, or without.
func drawnPolicies(t *rapid.T, tb testing.TB) *policy.Book {
	strategies, err := placement.NewRegistry(placement.Builtin()...)
	if err != nil {
		tb.Fatal(err)
	}
	b, err := (&Manager{config: DefaultConfig()}).policies(strategies)
	if err != nil {
		tb.Fatal(err)
	}
	p := &gpuv1alpha1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: "drawn", UID: "drawn", Generation: 1}}
	if pick(t, "policy", true, false) {
		if pick(t, "filters", true, false) {
			p.Spec.Filters = []gpuv1alpha1.PlacementFilter{{Name: "f", Expression: pick(t, "filter",
				`node.labels[?'pool'].orValue('a') == 'a'`, `node.labels['pool'] != 'b'`, `node.gpu.memoryMiB > 0 || workload.gpuCount < 3`), Message: "drawn: it is so"}}
		}
		if pick(t, "scores", true, false) {
			p.Spec.Scores = []gpuv1alpha1.PlacementScore{{Name: "s", Weight: 70, Expression: pick(t, "score",
				`node.labels[?'pool'].orValue('') == 'b' ? 90 : 30`, `node.gpu.memoryMiB / 1000`, `int(node.labels['pool'])`)}}
		}
		if pick(t, "weighs", true, true, false) {
			p.Spec.Weights = &gpuv1alpha1.ScoreWeights{
				Node:   &gpuv1alpha1.NodeScoreWeights{Topology: ptr.To(int32(0)), Resources: ptr.To(int32(0)), Balance: ptr.To(pick(t, "balance", int32(0), 300)), Hint: ptr.To(int32(1))},
				Domain: &gpuv1alpha1.DomainScoreWeights{Utilization: ptr.To(pick(t, "utilization", int32(0), 500))},
			}
		}
		p.Spec.Defaults = &gpuv1alpha1.PlacementDefaults{SchedulingStrategy: "binPack", Topology: &gpuv1alpha1.DefaultTopology{Preferred: pick(t, "default level", "", "leaf")}}
		b.Set(p, 10)
		if r, ok := b.Report("drawn"); !ok || r.Problem != nil {
			tb.Fatalf("the drawn policy is not in force: %v", r.Problem)
		}
	}
	return b
}

func newScenarios(t testing.TB, w *gpuv1alpha1.GPUWorkload, policies ...*policy.Book) *scenarios {
	t.Helper()
	strategies, err := placement.NewRegistry(placement.Builtin()...)
	if err != nil {
		t.Fatal(err)
	}
	config := DefaultConfig()
	world := state.New(config.levels(), strategies)
	for _, b := range policies {
		world.Follow(b)
	}
	return &scenarios{
		state: world, defaultImage: "image", synced: func() bool { return true }, clock: clocktesting.NewFakePassiveClock(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)),
		get: func(_ context.Context, key types.NamespacedName) (*gpuv1alpha1.GPUWorkload, error) {
			if key.Name != w.Name {
				return nil, apierrors.NewNotFound(schema.GroupResource{}, key.Name)
			}
			return w, nil
		},
	}
}

// What is told of a workload that waits is what the manager would answer: beside the room that is
// held for others, and that room only.
func TestScenarioLeavesAloneWhatIsHeldForOthers(t *testing.T) {
	w := &gpuv1alpha1.GPUWorkload{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "w", UID: "w"},
		Spec:       gpuv1alpha1.GPUWorkloadSpec{ModelName: "m", GPUCount: 1, Parallelism: 1},
	}
	h := newScenarios(t, w)
	h.state.SetReservations(state.Reservations{Max: 1, Patience: time.Minute, MaxWait: time.Hour})
	list := corev1.ResourceList{"cpu": resource.MustParse("64"), "memory": resource.MustParse("64Gi"), "pods": resource.MustParse("110"), "nvidia.com/gpu": resource.MustParse("8")}
	h.state.SetNode(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"kubernetes.io/hostname": "n"}},
		Status:     corev1.NodeStatus{Capacity: list, Allocatable: list, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	})
	feasible := func() bool {
		t.Helper()
		answer := get(h, "?workload=a/w")
		read, err := sim.Read(sim.Input{Name: "live.yaml", Data: answer.Body.Bytes()})
		if answer.Code != http.StatusOK || err != nil {
			t.Fatalf("%d, %v: %s", answer.Code, err, answer.Body)
		}
		d, err := sim.Place(read[0], sim.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return d.Feasible
	}
	if !feasible() {
		t.Error("nothing is held, and there is no room")
	}
	whole := w.DeepCopy()
	whole.Name, whole.UID, whole.Spec.GPUCount = "whole", "whole", 8
	pod, err := controller.PodOf(whole, "image")
	if err != nil {
		t.Fatal(err)
	}
	h.state.Await(whole, pod, h.clock.Now().Add(-2*time.Minute))
	h.state.Reserve(h.clock.Now())
	if feasible() {
		t.Error("it is placed in room that is held for another")
	}
}

func get(h http.Handler, query string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, scenarioPath+query, nil))
	return w
}

// checkSameAnswer plans a drawn workload on a drawn cluster, and says in what the answer to the
// scenario that was told just before differs.
func checkSameAnswer(t *rapid.T, tb testing.TB, spoil func(string) string) string {
	w := drawnAsk(t)
	h := newScenarios(tb, w, drawnPolicies(t, tb))
	nodes := rapid.IntRange(1, 10).Draw(t, "nodes")
	for i := range nodes {
		h.state.SetNode(drawnNode(t, fmt.Sprintf("n%d", i)))
	}
	drawnInsides(t, tb, h.state, drawnPods(t, h.state, nodes))
	h.state.SetWorkload(w)
	told := get(h, "?workload=team-a/job.v1")
	if told.Code != http.StatusOK && (strings.Contains(told.Body.String(), "which a file cannot say") || strings.Contains(told.Body.String(), "pods that are not there")) {
		return ""
	}
	if told.Code != http.StatusOK {
		return told.Body.String()
	}
	text := spoil(told.Body.String())
	read, err := sim.Read(sim.Input{Name: "live.yaml", Data: []byte(text)})
	if err != nil {
		return fmt.Sprintf("%v in\n%s", err, text)
	}
	answer, err := sim.Place(read[0], sim.Options{})
	if err != nil {
		return err.Error()
	}
	pod, err := controller.PodOf(w, "image")
	if err != nil {
		return err.Error()
	}
	live, nodeOf, err := h.state.Plan(w, pod, state.Ask{})
	if err != nil {
		return err.Error()
	}
	placed := map[string]int{}
	for _, node := range nodeOf {
		placed[node]++
	}
	var gpus []string
	for i, node := range live.Nodes() {
		if masks := live.Groups[0].GPUs; masks != nil && masks[i] != 0 {
			gpus = append(gpus, fmt.Sprint(node, masks[i].Indexes()))
		}
	}
	var fileGPUs []string
	for node, sets := range answer.GPUs {
		for _, set := range sets {
			fileGPUs = append(fileGPUs, fmt.Sprint(node, set))
		}
	}
	slices.Sort(gpus)
	slices.Sort(fileGPUs)
	// The file has one label for a level, and no cluster that ever knew of other resources: where
	// no node has either, the same is said in other words.
	sameReason := answer.Reason == live.Why.Sentence || strings.Contains(live.Why.Sentence, "no node carries level") ||
		strings.Contains(live.Why.Sentence, "which the template asks for")
	if answer.Feasible != live.Feasible || !sameReason || !maps.Equal(placed, answer.Placement["main"]) || !slices.Equal(gpus, fileGPUs) {
		return fmt.Sprintf("live: %v %v %v %s\nfile: %v %v %v %s\n%s", live.Feasible, placed, gpus, live.Why.Sentence,
			answer.Feasible, answer.Placement["main"], fileGPUs, answer.Reason, text)
	}
	// What the workload holds now is no part of the question.
	if again := get(h, "?workload=team-a/job.v1"); again.Body.String() != told.Body.String() {
		return "once planned, the workload is in its own way:\n" + again.Body.String()
	}
	return ""
}

func TestScenarioHasTheLiveAnswer(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		if problem := checkSameAnswer(rt, t, func(text string) string { return text }); problem != "" {
			rt.Fatal(problem)
		}
	})
}

// The property above must be able to fail: a file that lost something has another answer.
func TestScenarioPropertyFindsMistakes(t *testing.T) {
	without := func(line string) func(string) string {
		return func(text string) string {
			var kept strings.Builder
			for l := range strings.Lines(text) {
				if !strings.Contains(l, line) {
					kept.WriteString(l)
				}
			}
			return kept.String()
		}
	}
	for name, spoil := range map[string]func(string) string{
		"cordons are lost":  without("unschedulable:"),
		"the level is lost": without("topology:"),
		"what runs is lost": func(text string) string {
			before, rest, _ := strings.Cut(text, "running:\n")
			if _, request, ok := strings.Cut(rest, "\nrequest:\n"); ok {
				return before + "request:\n" + request
			}
			return text
		},
		"the minimum is lost":     without("minCount:"),
		"what is inside is lost":  without("gpus: {"),
		"who holds which is lost": without("    gpus: ["),
		"the policy is lost": func(text string) string {
			before, _, _ := strings.Cut(text, "\npolicy:\n")
			return before + "\n"
		},
	} {
		t.Run(name, func(t *testing.T) {
			found := false
			for range 10 {
				rapid.Check(t, func(rt *rapid.T) {
					if !found {
						found = checkSameAnswer(rt, t, spoil) != ""
					}
				})
			}
			if !found {
				t.Error("the property holds for a broken file")
			}
		})
	}
}

// The weights of a policy are part of the file: without them best fit would win, which they say
// counts for nothing.
func TestScenarioHasTheWeights(t *testing.T) {
	w := &gpuv1alpha1.GPUWorkload{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "w", UID: "w"},
		Spec:       gpuv1alpha1.GPUWorkloadSpec{ModelName: "m", GPUCount: 2, SchedulingStrategy: "topologyAware"},
	}
	strategies, err := placement.NewRegistry(placement.Builtin()...)
	if err != nil {
		t.Fatal(err)
	}
	b, err := (&Manager{config: DefaultConfig()}).policies(strategies)
	if err != nil {
		t.Fatal(err)
	}
	h := newScenarios(t, w, b)
	for i, free := range []string{"8", "2"} {
		list := corev1.ResourceList{"cpu": resource.MustParse("64"), "pods": resource.MustParse("9"), "nvidia.com/gpu": resource.MustParse(free)}
		h.state.SetNode(&corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i), Labels: map[string]string{"kubernetes.io/hostname": fmt.Sprintf("n%d", i)}},
			Status:     corev1.NodeStatus{Allocatable: list, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
		})
	}
	placed := func() string {
		text := get(h, "?workload=a/w").Body.Bytes()
		read, err := sim.Read(sim.Input{Name: "live.yaml", Data: text})
		if err != nil {
			t.Fatal(err)
		}
		answer, err := sim.Place(read[0], sim.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for node := range answer.Placement["main"] {
			return node
		}
		return answer.Reason
	}
	if got := placed(); got != "n1" {
		t.Errorf("by the default weights on %s, want n1, the best fit", got)
	}
	p := &gpuv1alpha1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "p", Generation: 1}}
	none := ptr.To(int32(0))
	p.Spec.Weights = &gpuv1alpha1.ScoreWeights{Node: &gpuv1alpha1.NodeScoreWeights{Topology: none, Resources: none, Balance: none, Hint: ptr.To(int32(1))}}
	b.Set(p, 2)
	if got := placed(); got != "n0" {
		t.Errorf("by the policy's weights on %s, want n0, the first of equals", got)
	}
}

func TestScenarioEndpointRefuses(t *testing.T) {
	w := &gpuv1alpha1.GPUWorkload{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "w", UID: "w"}}
	for name, c := range map[string]struct {
		query string
		edit  func(*scenarios)
		want  int
	}{
		"no workload named":       {"", func(*scenarios) {}, http.StatusBadRequest},
		"no namespace":            {"?workload=w", func(*scenarios) {}, http.StatusBadRequest},
		"a workload not there":    {"?workload=a/v", func(*scenarios) {}, http.StatusNotFound},
		"before all was read":     {"?workload=a/w", func(h *scenarios) { h.synced = func() bool { return false } }, http.StatusServiceUnavailable},
		"what cannot be planned":  {"?workload=a/w", func(*scenarios) { w.Spec.SchedulingStrategy = "best" }, http.StatusUnprocessableEntity},
		"what can, without nodes": {"?workload=a/w", func(*scenarios) { w.Spec.SchedulingStrategy = "" }, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			h := newScenarios(t, w)
			c.edit(h)
			if got := get(h, c.query); got.Code != c.want {
				t.Errorf("status %d, want %d: %s", got.Code, c.want, got.Body)
			}
		})
	}
	post := httptest.NewRecorder()
	newScenarios(t, w).ServeHTTP(post, httptest.NewRequest(http.MethodPost, scenarioPath, nil))
	if post.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: status %d", post.Code)
	}
}
