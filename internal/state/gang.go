package state

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

// maxGang is the largest gang that plain pods may declare: as many as a GPUWorkload may have.
const maxGang = 10000

// PodGang is what a plain pod says of its gang and of how it wants to be placed: by labels and
// annotations, or, as far as Name, Size, Min and Required go, by a PodGroup that it belongs to.
type PodGang struct {
	// Name is the gang's, in the pod's namespace; zero for a pod by itself.
	Name types.NamespacedName
	// Size is how many pods there are, 1 for a pod by itself, Min the least that will do.
	Size, Min int
	// Required and Preferred are topology levels, by name or by node label.
	Required, Preferred string
	// SliceSize consecutive ranks are in one domain of SliceLevel; 0 asks for nothing.
	SliceSize  int
	SliceLevel string
	Strategy   string
	Preference gpuv1alpha1.TopologyPreference
}

// IsGang tells whether the pod has company.
func (g *PodGang) IsGang() bool { return g.Name.Name != "" }

// GangOf reads what the pod says. Errors are *InvalidError; they name the label or annotation.
func GangOf(pod *corev1.Pod) (PodGang, error) {
	g := PodGang{
		Size:       1,
		Min:        1,
		Required:   pod.Annotations[gpuv1alpha1.RequiredLevelAnnotation],
		Preferred:  pod.Annotations[gpuv1alpha1.PreferredLevelAnnotation],
		Strategy:   pod.Annotations[gpuv1alpha1.StrategyAnnotation],
		Preference: gpuv1alpha1.TopologyPreference(pod.Annotations[gpuv1alpha1.PreferenceAnnotation]),
	}
	known := []gpuv1alpha1.TopologyPreference{
		"", gpuv1alpha1.TopologyNone, gpuv1alpha1.TopologyNVLink, gpuv1alpha1.TopologyNUMA, gpuv1alpha1.TopologyPCIe,
	}
	if !slices.Contains(known, g.Preference) {
		return g, annotation(gpuv1alpha1.PreferenceAnnotation, "%q is none of none, nvlink, numa, pcie", g.Preference)
	}
	if err := g.readSize(pod); err != nil {
		return g, err
	}
	return g, g.readSlice(pod)
}

// readSize reads the name and the size of the gang.
func (g *PodGang) readSize(pod *corev1.Pod) error {
	name, size := pod.Labels[gpuv1alpha1.GangLabel], pod.Labels[gpuv1alpha1.GangSizeLabel]
	least, elastic := pod.Annotations[gpuv1alpha1.GangMinSizeAnnotation]
	switch {
	case name == "" && size == "" && !elastic:
		return nil
	case name == "":
		return label(gpuv1alpha1.GangLabel, "is missing: name the gang whose size the pod tells")
	case size == "":
		return label(gpuv1alpha1.GangSizeLabel, "is missing: say how many pods gang %q has", name)
	}
	n, err := strconv.Atoi(size)
	if err != nil || n < 1 || n > maxGang {
		return label(gpuv1alpha1.GangSizeLabel, "%q is no number of pods: write a whole number from 1 to %d", size, maxGang)
	}
	g.Name = types.NamespacedName{Namespace: pod.Namespace, Name: name}
	g.Size, g.Min = n, n
	if !elastic {
		return nil
	}
	m, err := strconv.Atoi(least)
	if err != nil || m < 1 || m > n {
		return annotation(gpuv1alpha1.GangMinSizeAnnotation, "%q is no number of pods: write a whole number from 1 to the gang's size, %d", least, n)
	}
	g.Min = m
	return nil
}

// readSlice reads "16/leaf".
func (g *PodGang) readSlice(pod *corev1.Pod) error {
	text, ok := pod.Annotations[gpuv1alpha1.SliceAnnotation]
	if !ok {
		return nil
	}
	size, level, _ := strings.Cut(text, "/")
	n, err := strconv.Atoi(size)
	switch {
	case err != nil || n < 1 || level == "":
		return annotation(gpuv1alpha1.SliceAnnotation, "%q is no slice: write a number of pods and a topology level, for example 16/leaf", text)
	case g.Size%n != 0:
		return annotation(gpuv1alpha1.SliceAnnotation, "slices of %d do not divide a gang of %d: change one of the two", n, g.Size)
	}
	g.SliceSize, g.SliceLevel = n, level
	return nil
}

func label(key, format string, args ...any) error {
	return &InvalidError{Field: fmt.Sprintf("metadata.labels[%s]", key), Problem: fmt.Sprintf(format, args...)}
}

func annotation(key, format string, args ...any) error {
	return &InvalidError{Field: fmt.Sprintf("metadata.annotations[%s]", key), Problem: fmt.Sprintf(format, args...)}
}

// GPUOf returns the resource of the pod that counts as its GPUs, and how many it asks for; "" if
// it asks for none. Of several resources the first by name counts: the others are amounts.
func GPUOf(pod *corev1.Pod) (name string, count int64) {
	for _, list := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			for n, q := range list[i].Resources.Requests {
				if IsGPU(string(n)) && !q.IsZero() && (name == "" || string(n) < name) {
					name = string(n)
				}
			}
		}
	}
	if name == "" {
		return "", 0
	}
	if !sane(pod) {
		return name, math.MaxInt64 // More than any node has; CheckAmounts says what is wrong.
	}
	// Init containers run before the others, unless they are restarted: then they run beside them.
	q := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})[corev1.ResourceName(name)]
	return name, q.Value()
}

// IsGPU tells whether a resource counts GPUs or parts of one.
func IsGPU(name string) bool {
	return strings.HasPrefix(name, "nvidia.com/gpu") && !strings.HasPrefix(name, "nvidia.com/gpumem") && !strings.HasPrefix(name, "nvidia.com/gpucores") ||
		strings.HasPrefix(name, "nvidia.com/mig-") ||
		name == "amd.com/gpu" || name == "gpu.intel.com/i915" || name == "gpu.intel.com/xe"
}

// PodQuestion translates count pods like the given one, of a gang, into a question to the engine.
// Kept are the nodes of the gang's members that have one already; count pods are placed beside
// them. least is the fewest that will do, 0 for all. It holds nothing and changes nothing.
//
// Errors are *InvalidError where the pods must change.
func (s *State) PodQuestion(pod *corev1.Pod, g *PodGang, count, least int, kept []string) (placement.Request, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.podQuestion(pod, g, count, least, kept)
}

// podQuestion is PodQuestion for callers that hold the lock.
func (s *State) podQuestion(pod *corev1.Pod, g *PodGang, count, least int, kept []string) (placement.Request, error) {
	r := placement.Request{Name: pod.Namespace + "/" + pod.Name, Strategy: g.Strategy, Seed: seed(pod.UID, 0)}
	if g.IsGang() {
		r.Name = g.Name.String()
	}
	if r.Strategy == "" {
		r.Strategy = gpuv1alpha1.DefaultStrategy
	}
	if _, err := s.strategies.Get(r.Strategy); err != nil {
		return r, annotation(gpuv1alpha1.StrategyAnnotation, "%v", err)
	}
	if pod.Spec.Priority != nil {
		r.Priority = *pod.Spec.Priority
	}
	if err := CheckAmounts(&pod.Spec); err != nil {
		return r, &InvalidError{Field: "spec", Problem: err.Error()}
	}
	group := placement.Group{Count: count, MinCount: least, Kept: kept, Topology: placement.NoTopology()}
	var err error
	if group.Topology.Required, err = s.level(gpuv1alpha1.RequiredLevelAnnotation, g.Required); err != nil {
		return r, err
	}
	if group.Topology.Preferred, err = s.level(gpuv1alpha1.PreferredLevelAnnotation, g.Preferred); err != nil {
		return r, err
	}
	if g.SliceSize > 0 && count%g.SliceSize == 0 {
		slice := placement.Slice{Size: g.SliceSize}
		if slice.Level, err = s.level(gpuv1alpha1.SliceAnnotation, g.SliceLevel); err != nil {
			return r, err
		}
		if slice.Level >= group.Topology.Required {
			group.Slices = []placement.Slice{slice}
		}
	}
	name, gpus := GPUOf(pod)
	group.Pod = placement.Shape{
		GPUResource:     s.resources.Index(name),
		GPUResourceName: name,
		GPUs:            gpus,
		Resources:       podUse(pod, s.resources),
		Missing:         missing(pod, name, s.resources),
		Selector:        translateSelector(pod),
		Likes:           translateLikes(pod),
		Tolerations:     translateTolerations(pod),
		Prefer:          preference(g.Preference),
	}
	r.Groups = []placement.Group{group}
	return r, nil
}

func (s *State) level(key, name string) (int, error) {
	return findLevel(s.levels, fmt.Sprintf("metadata.annotations[%s]", key), name)
}
