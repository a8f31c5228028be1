package state

import (
	"fmt"
	"hash/fnv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

// InvalidError says that a workload cannot be carried out as written, and what to change. It
// will not go away by itself.
type InvalidError struct {
	// Field is the path of the field: "spec.topology.required".
	Field string
	// Problem is a sentence with what is wrong and what to do.
	Problem string
}

// Error implements error.
func (e *InvalidError) Error() string { return e.Field + ": " + e.Problem }

// ResourceName returns what the pods of the workload ask their node for.
func ResourceName(w *gpuv1alpha1.GPUWorkload) string {
	switch g := w.Spec.GPU; {
	case g == nil || g.ResourceName == "" && g.Milli == nil:
		return gpuv1alpha1.DefaultResourceName
	case g.Milli != nil:
		return gpuv1alpha1.SharedResourceName
	default:
		return g.ResourceName
	}
}

// request translates a workload and the pod it runs into a question to the engine.
func request(w *gpuv1alpha1.GPUWorkload, pod *corev1.Pod, levels []cluster.Level, resources *cluster.Resources) (placement.Request, error) {
	group := placement.Group{Count: int(max(w.Spec.Parallelism, 1)), Pod: shape(w, pod, resources)}
	if err := translateTopology(&group, w.Spec.Topology, levels); err != nil {
		return placement.Request{}, err
	}
	r := placement.Request{
		Name:     w.Namespace + "/" + w.Name,
		Strategy: w.Spec.SchedulingStrategy,
		Priority: Priority(w),
		Preempts: w.Evicts(),
		Seed:     seed(w.UID, w.Status.Attempt),
	}
	if r.Strategy == "" {
		r.Strategy = gpuv1alpha1.DefaultStrategy
	}
	if w.Spec.MinParallelism != nil {
		group.MinCount = int(*w.Spec.MinParallelism)
	}
	r.Groups = []placement.Group{group}
	return r, nil
}

func shape(w *gpuv1alpha1.GPUWorkload, pod *corev1.Pod, resources *cluster.Resources) placement.Shape {
	name := ResourceName(w)
	s := placement.Shape{
		GPUResource:     resources.Index(name),
		GPUResourceName: name,
		Selector:        translateSelector(pod),
		Likes:           translateLikes(pod),
		Tolerations:     translateTolerations(pod),
		GPU:             gpuOf(w),
	}
	s.Resources = podUse(pod, resources)
	s.GPUs = int64(max(w.Spec.GPUCount, 1))
	s.Missing = missing(pod, name, resources)
	if g := w.Spec.GPU; g != nil {
		s.Prefer = preference(g.TopologyPreference)
		if g.Milli != nil {
			s.Milli = int(*g.Milli)
		}
	}
	return s
}

// missing returns a resource that the pod asks for and no node has: the GPU's if it is one, or
// else the first by name.
func missing(pod *corev1.Pod, gpu string, resources *cluster.Resources) string {
	found := ""
	for _, c := range pod.Spec.Containers {
		for n := range c.Resources.Requests {
			name := string(n)
			if resources.Index(name) < 0 && found != gpu && (found == "" || name == gpu || name < found) {
				found = name
			}
		}
	}
	return found
}

// gpuOf translates which kinds of GPU will do.
func gpuOf(w *gpuv1alpha1.GPUWorkload) cluster.GPUFacts {
	g := w.Spec.GPU
	if g == nil {
		return cluster.GPUFacts{}
	}
	facts := cluster.GPUFacts{Product: g.Product, Architecture: strings.ToLower(g.Architecture)}
	if g.MinMemory != nil {
		// Labels tell whole MiB: asking for a fraction of one rounds up.
		facts.MemoryMiB = (g.MinMemory.Value() + 1<<20 - 1) >> 20
	}
	return facts
}

func translateTopology(group *placement.Group, t *gpuv1alpha1.TopologyRequirements, levels []cluster.Level) error {
	group.Topology = placement.NoTopology()
	if t == nil {
		return nil
	}
	var err error
	if group.Topology.Required, err = findLevel(levels, "spec.topology.required", t.Required); err != nil {
		return err
	}
	if group.Topology.Preferred, err = findLevel(levels, "spec.topology.preferred", t.Preferred); err != nil {
		return err
	}
	if t.Slice == nil {
		return nil
	}
	slice := placement.Slice{Size: int(t.Slice.Size)}
	if slice.Level, err = findLevel(levels, "spec.topology.slice.level", t.Slice.Level); err != nil {
		return err
	}
	if slice.Level < group.Topology.Required {
		return nil // One narrower domain holds the gang, and so every slice of it.
	}
	group.Slices = []placement.Slice{slice}
	return nil
}

func findLevel(levels []cluster.Level, field, name string) (int, error) {
	if name == "" {
		return placement.AnyLevel, nil
	}
	if i, ok := cluster.FindLevel(levels, name); ok {
		return i, nil
	}
	names := make([]string, len(levels))
	for i, l := range levels {
		names[i] = l.Name
	}
	return placement.AnyLevel, &InvalidError{
		Field:   field,
		Problem: fmt.Sprintf("there is no topology level %q; this installation knows %s", name, strings.Join(names, ", ")),
	}
}

func translateTolerations(pod *corev1.Pod) []cluster.Toleration {
	var all []cluster.Toleration
	for _, t := range pod.Spec.Tolerations {
		all = append(all, cluster.Toleration{
			Key:    t.Key,
			Value:  t.Value,
			Effect: cluster.Effect(t.Effect),
			Exists: t.Operator == corev1.TolerationOpExists,
		})
	}
	return all
}

// translateSelector reads nodeSelector and required node affinity.
func translateSelector(pod *corev1.Pod) cluster.Selector {
	s := cluster.Selector{Labels: pod.Spec.NodeSelector}
	a := pod.Spec.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return s
	}
	terms := a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	for i := range terms {
		s.Terms = append(s.Terms, translateTerm(&terms[i]))
	}
	return s
}

func translateTerm(term *corev1.NodeSelectorTerm) cluster.Term {
	t := make(cluster.Term, 0, len(term.MatchExpressions)+len(term.MatchFields))
	for _, e := range term.MatchExpressions {
		t = append(t, cluster.Requirement{Key: e.Key, Operator: cluster.Operator(e.Operator), Values: e.Values})
	}
	for _, e := range term.MatchFields {
		t = append(t, cluster.Requirement{Key: e.Key, Operator: cluster.Operator(e.Operator), Values: e.Values, Field: true})
	}
	return t
}

// translateLikes reads preferred node affinity.
func translateLikes(pod *corev1.Pod) []placement.Like {
	a := pod.Spec.Affinity
	if a == nil || a.NodeAffinity == nil {
		return nil
	}
	var likes []placement.Like
	for _, p := range a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
		likes = append(likes, placement.Like{Term: translateTerm(&p.Preference), Weight: int(p.Weight)})
	}
	return likes
}

// seed makes strategy random the same for one attempt of one workload, whoever plans it.
func seed(uid types.UID, attempt int32) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s/%d", uid, attempt)
	return h.Sum64()
}

// preference translates what the pod's GPUs should have in common.
func preference(p gpuv1alpha1.TopologyPreference) placement.Preference {
	switch p {
	case gpuv1alpha1.TopologyNVLink:
		return placement.PreferNVLink
	case gpuv1alpha1.TopologyNUMA:
		return placement.PreferNUMA
	case gpuv1alpha1.TopologyPCIe:
		return placement.PreferPCIe
	}
	return placement.AnyGPUs
}
