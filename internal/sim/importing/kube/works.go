package kube

import (
	"cmp"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

// queueLabel is where Kueue is told the LocalQueue of a job.
const queueLabel = "kueue.x-k8s.io/queue-name"

// groupLabels and groupAnnotation are where pods without a common owner say that they belong
// together: to Kueue, LeaderWorkerSet, the coscheduling plugin and Volcano.
func groupLabels() []string {
	return []string{"kueue.x-k8s.io/pod-group-name", "leaderworkerset.sigs.k8s.io/group-key", "scheduling.x-k8s.io/pod-group"}
}

const groupAnnotation = "scheduling.k8s.io/group-name"

// work is what becomes a job: what was submitted together and starts together.
type work struct {
	namespace, name string
	labels          map[string]string
	created         time.Time
	// workload is the GPUWorkload that it is, nil for others.
	workload *gpuv1alpha1.GPUWorkload
	// jobs are its Jobs, with their pods; pods are those that no Job in sight owns.
	jobs []jobWork
	pods []*corev1.Pod
}

// jobWork is a Job and its pods.
type jobWork struct {
	*batchv1.Job
	pods []*corev1.Pod
}

// works puts together what belongs together, in the order of names.
func (t *translator) works(o *Objects) []*work {
	all := map[types.UID]*work{}
	for _, w := range o.Workloads {
		all[w.UID] = &work{namespace: w.Namespace, name: w.Name, labels: w.Labels, created: w.CreationTimestamp.Time, workload: w}
	}
	pods := map[types.UID][]*corev1.Pod{}
	inJob := map[types.UID]bool{}
	for _, j := range o.Jobs {
		inJob[j.UID] = true
	}
	for _, p := range o.Pods {
		if owner := metav1.GetControllerOf(p); owner != nil && inJob[owner.UID] {
			pods[owner.UID] = append(pods[owner.UID], p)
			continue
		}
		joinPod(all, p)
	}
	for _, j := range o.Jobs {
		uid, name := j.UID, j.Name
		// A CronJob's Jobs start one by one.
		if owner := metav1.GetControllerOf(j); owner != nil && (owner.Kind == "GPUWorkload" || owner.Kind == "JobSet") {
			uid, name = owner.UID, owner.Name
		}
		w, known := all[uid]
		if !known {
			w = &work{namespace: j.Namespace, name: name, labels: j.Labels, created: j.CreationTimestamp.Time}
			all[uid] = w
		}
		if w.workload == nil && j.CreationTimestamp.Time.Before(w.created) {
			w.created = j.CreationTimestamp.Time
		}
		w.jobs = append(w.jobs, jobWork{j, pods[j.UID]})
	}
	list := make([]*work, 0, len(all))
	for _, w := range all {
		if w.workload != nil && len(w.jobs) > 1 {
			// Each attempt is a Job; the last is what came of it.
			w.jobs = []jobWork{slices.MaxFunc(w.jobs, func(a, b jobWork) int {
				return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
			})}
		}
		list = append(list, w)
	}
	slices.SortFunc(list, func(a, b *work) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name), a.created.Compare(b.created))
	})
	return list
}

// joinPod takes in a pod that no Job in sight owns.
func joinPod(all map[types.UID]*work, p *corev1.Pod) {
	uid, name := together(p)
	w, known := all[uid]
	if !known {
		w = &work{namespace: p.Namespace, name: name, labels: p.Labels, created: p.CreationTimestamp.Time}
		all[uid] = w
	}
	if w.workload == nil && p.CreationTimestamp.Time.Before(w.created) {
		w.created = p.CreationTimestamp.Time
	}
	w.pods = append(w.pods, p)
}

// together says what a pod belongs to, by a key and a name: to others of its group or owner, or to
// itself alone. Replicas of a service start and end one by one, whoever owns them.
func together(p *corev1.Pod) (key types.UID, name string) {
	for _, group := range append(groupsOf(p), p.Annotations[groupAnnotation]) {
		if group != "" {
			return types.UID("group " + p.Namespace + "/" + group), group
		}
	}
	owner := metav1.GetControllerOf(p)
	if owner == nil {
		return p.UID, p.Name
	}
	group, _, _ := strings.Cut(owner.APIVersion, "/")
	if group == "apps" || owner.Kind == "Node" || owner.Kind == "ReplicationController" {
		return p.UID, p.Name
	}
	return owner.UID, owner.Name
}

func groupsOf(p *corev1.Pod) []string {
	var groups []string
	for _, key := range groupLabels() {
		groups = append(groups, p.Labels[key])
	}
	return groups
}

// queue is what the work was submitted to: Kueue's LocalQueue, whose name is its namespace's own,
// or the namespace.
func (w *work) queue() string {
	if queue := w.labels[queueLabel]; queue != "" {
		return w.namespace + "/" + queue
	}
	return w.namespace
}

// priority is what admission gave its pods. A GPUWorkload without says it in words.
func (w *work) priority() int32 {
	for _, p := range w.allPods() {
		if p.Spec.Priority != nil && *p.Spec.Priority != 0 {
			return *p.Spec.Priority
		}
	}
	if w.workload != nil {
		switch w.workload.Spec.Priority {
		case gpuv1alpha1.PriorityLow:
			return -1
		case gpuv1alpha1.PriorityHigh:
			return 1
		case gpuv1alpha1.PriorityCritical:
			return 2
		}
	}
	return 0
}

func (w *work) allPods() []*corev1.Pod {
	all := slices.Clone(w.pods)
	for _, j := range w.jobs {
		all = append(all, j.pods...)
	}
	return all
}
