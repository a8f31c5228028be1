package scheduler

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"
)

const (
	// evictTimeout bounds the writes of one preemption, evictors is how many are made at a time.
	evictTimeout = time.Minute
	evictors     = 16
)

// evict ends pods that make way: each is told why, and then deleted. Those that changed meanwhile
// are looked at again first; what fails is tried again when the patience with victims is over.
func (d *desk) evict(pods []*corev1.Pod, who string) {
	ctx, cancel := context.WithTimeout(context.Background(), evictTimeout)
	defer cancel()
	var group errgroup.Group
	group.SetLimit(evictors)
	for _, pod := range pods {
		group.Go(func() error {
			err := retry.RetryOnConflict(retry.DefaultRetry, func() error { return d.evictOne(ctx, pod, who) })
			if err != nil && !apierrors.IsNotFound(err) {
				klog.ErrorS(err, "Evicting a pod", "pod", klog.KObj(pod), "for", who)
			}
			return nil
		})
	}
	_ = group.Wait() // Each failure was told.
}

func (d *desk) evictOne(ctx context.Context, pod *corev1.Pod, who string) error {
	why := fmt.Sprintf("evicted by the scheduler for %s, which has a higher priority", who)
	patch, err := statusPatch(pod.UID, corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonPreemptionByScheduler,
		Message: why, LastTransitionTime: metav1.NewTime(d.clock.Now()),
	})
	if err != nil {
		return err
	}
	client := d.handle.ClientSet().CoreV1().Pods(pod.Namespace)
	now, err := client.Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return err
	}
	err = client.Delete(ctx, pod.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &now.UID, ResourceVersion: &now.ResourceVersion},
	})
	if err != nil {
		return err
	}
	d.handle.EventRecorder().Eventf(pod, nil, corev1.EventTypeWarning, "Preempted", "Preempting", why)
	return nil
}
