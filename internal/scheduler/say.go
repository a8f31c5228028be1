package scheduler

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
)

// sayTimeout bounds the writes of one round.
const sayTimeout = 10 * time.Second

// tendGroups tells pods what their PodGroup lacks, and PodGroups that they have no pods: where the
// stock plugin holds pods back it says so to nobody. The caller holds the lock.
func (d *desk) tendGroups(now time.Time) {
	if d.podGroups == nil {
		return
	}
	for _, g := range d.groups {
		if now.Sub(g.since) < d.args.TellAfter.Duration {
			continue
		}
		if lack := d.lack(g); lack != g.told {
			g.told = lack
			if pods := untold(g.pods, lack); lack != "" && len(pods) > 0 {
				go d.sayPods(pods, lack)
			}
		}
	}
	groups, err := d.podGroups.List(labels.Everything())
	if err != nil {
		return // A lister of an informer does not fail.
	}
	for _, g := range groups {
		_, known := d.groups[types.NamespacedName{Namespace: g.Namespace, Name: g.Name}]
		said := apimeta.FindStatusCondition(g.Status.Conditions, schedulingv1alpha2.PodGroupScheduled) != nil
		if !known && !said && g.DeletionTimestamp == nil && now.Sub(g.CreationTimestamp.Time) > d.args.TellAfter.Duration && d.membersOf(g.Namespace, g.Name) == 0 {
			go d.sayEmpty(g)
		}
	}
}

// lack says what a PodGroup's pods wait for before anybody looks for room, "" if for nothing.
func (d *desk) lack(g *group) string {
	object, err := d.podGroups.PodGroups(g.name.Namespace).Get(g.name.Name)
	if apierrors.IsNotFound(err) {
		return fmt.Sprintf("there is no PodGroup %s in namespace %s, which spec.schedulingGroup names: create it, or make the pod without", g.name.Name, g.name.Namespace)
	}
	if err != nil || object.Spec.SchedulingPolicy.Gang == nil {
		return ""
	}
	least, have := int(object.Spec.SchedulingPolicy.Gang.MinCount), d.membersOf(g.name.Namespace, g.name.Name)
	if have >= least {
		return ""
	}
	return fmt.Sprintf("waiting for %d of %d pods of PodGroup %s", least-have, least, g.name.Name)
}

// membersOf returns how many pods name the PodGroup.
func (d *desk) membersOf(namespace, name string) int {
	states, err := d.handle.PodGroupManager().PodGroupStates().Get(namespace, name)
	if err != nil {
		return 0 // It is an error not to be known: nobody names it.
	}
	return states.AllPodsCount()
}

// untold returns the pods whose condition says something else: another replica may have told them.
func untold(pods map[types.UID]*corev1.Pod, why string) []*corev1.Pod {
	var list []*corev1.Pod
	for _, pod := range pods {
		_, condition := podutil.GetPodCondition(&pod.Status, corev1.PodScheduled)
		if condition == nil || condition.Message != why {
			list = append(list, pod)
		}
	}
	return list
}

// sayPods writes into the pods' conditions, and as events, why they wait.
func (d *desk) sayPods(pods []*corev1.Pod, why string) {
	ctx, cancel := context.WithTimeout(context.Background(), sayTimeout)
	defer cancel()
	for _, pod := range pods {
		d.sayPod(ctx, pod, why)
	}
}

func (d *desk) sayPod(ctx context.Context, pod *corev1.Pod, why string) {
	d.handle.EventRecorder().Eventf(pod, nil, corev1.EventTypeWarning, "FailedScheduling", "Scheduling", why)
	condition := corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		Message: why, LastTransitionTime: metav1.NewTime(d.clock.Now()),
	}
	patch, err := statusPatch(pod.UID, condition)
	if err == nil {
		_, err = d.handle.ClientSet().CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	}
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		klog.ErrorS(err, "Telling a pod why it waits", "pod", klog.KObj(pod))
	}
}

// sayEmpty writes into a PodGroup that no pod names it.
func (d *desk) sayEmpty(g *schedulingv1alpha2.PodGroup) {
	ctx, cancel := context.WithTimeout(context.Background(), sayTimeout)
	defer cancel()
	condition := metav1.Condition{
		Type: schedulingv1alpha2.PodGroupScheduled, Status: metav1.ConditionFalse, Reason: schedulingv1alpha2.PodGroupReasonUnschedulable,
		Message:            "no pod belongs to it: name it in spec.schedulingGroup.podGroupName of pods in its namespace",
		LastTransitionTime: metav1.NewTime(d.clock.Now()), ObservedGeneration: g.Generation,
	}
	patch, err := statusPatch(g.UID, condition)
	if err == nil {
		_, err = d.handle.ClientSet().SchedulingV1alpha2().PodGroups(g.Namespace).Patch(ctx, g.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	}
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		klog.ErrorS(err, "Telling a PodGroup that it has no pods", "podGroup", klog.KObj(g))
	}
}

// statusPatch sets one condition, of the object with the UID alone.
func statusPatch(uid types.UID, condition any) ([]byte, error) {
	return json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": uid},
		"status":   map[string]any{"conditions": []any{condition}},
	})
}
