package state

import (
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// member says which rank of which attempt of a workload a pod is, and by which Job.
type member struct {
	workload types.UID
	attempt  int32
	rank     int32
	job      types.NamespacedName
}

// memberOf reads a pod's labels; the second result is false for pods of nobody.
func memberOf(pod *corev1.Pod) (member, bool) {
	uid := pod.Labels[gpuv1alpha1.WorkloadUIDLabel]
	attempt, err := strconv.ParseInt(pod.Labels[gpuv1alpha1.AttemptLabel], 10, 32)
	if uid == "" || err != nil {
		return member{}, false
	}
	rank, ok := Rank(pod)
	owner := metav1.GetControllerOf(pod)
	if !ok || owner == nil || owner.Kind != "Job" {
		return member{}, false
	}
	return member{
		workload: types.UID(uid),
		attempt:  int32(attempt),
		rank:     rank,
		job:      types.NamespacedName{Namespace: pod.Namespace, Name: owner.Name},
	}, true
}

// Rank returns the completion index of a Job's pod.
func Rank(pod *corev1.Pod) (int32, bool) {
	rank, err := strconv.ParseInt(pod.Annotations[batchv1.JobCompletionIndexAnnotation], 10, 32)
	return int32(rank), err == nil
}

// Finished tells whether the pod has ended and holds nothing any more.
func Finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// PlannedNode returns the one node that the pod's required affinity leaves it, or "". That is
// what the plan wrote, and what the binder goes by.
func PlannedNode(pod *corev1.Pod) string {
	a := pod.Spec.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return ""
	}
	name := ""
	for _, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		in := ""
		for _, f := range term.MatchFields {
			if f.Key == "metadata.name" && f.Operator == corev1.NodeSelectorOpIn && len(f.Values) == 1 {
				in = f.Values[0]
			}
		}
		if in == "" || name != "" && in != name {
			return ""
		}
		name = in
	}
	return name
}

// holdsNode returns the node whose resources the pod holds: the one it is bound to. A pod that
// is only planned holds nothing by itself, whatever it says: the promise of its plan does.
func holdsNode(pod *corev1.Pod) string {
	if Finished(pod) {
		return ""
	}
	return pod.Spec.NodeName
}

// podUse is what a pod takes of its node, as far as the table knows the resources: only nodes
// bring in new ones. A pod whose amounts cannot be reckoned with takes its place and no more.
func podUse(pod *corev1.Pod, resources *cluster.Resources) cluster.Vector {
	use := make(cluster.Vector, resources.Len())
	if sane(pod) {
		fill(use, resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{UseStatusResources: true}), resources)
	}
	use[cluster.Pods] = 1
	return use
}

// translateList turns what a node offers into a vector, growing the table for new names.
func translateList(list corev1.ResourceList, resources *cluster.Resources) (cluster.Vector, *cluster.Resources) {
	for name := range list {
		resources = resources.With(string(name))
	}
	v := make(cluster.Vector, resources.Len())
	fill(v, list, resources)
	return v, resources
}

func fill(v cluster.Vector, list corev1.ResourceList, resources *cluster.Resources) {
	for name, q := range list {
		switch i := resources.Index(string(name)); {
		case i < 0 || !reasonable(&q):
			continue
		case i == cluster.CPU:
			v[i] = q.MilliValue()
		default:
			v[i] = q.Value()
		}
	}
}

func newQuantity(v int64) *resource.Quantity { return resource.NewQuantity(v, resource.DecimalSI) }
