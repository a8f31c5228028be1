package attacks

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/internal/state"
)

// TestSquatting takes the name that the controller will give to a workload's Job (attack 12): the
// Job is not adopted, the workload says so, and once it is gone, it runs.
func TestSquatting(t *testing.T) {
	w := open(t)
	c, tenant := w.as(t, identity{}), w.as(t, alice)
	w.gpuNode(t, c)
	work := &gpuv1alpha1.GPUWorkload{
		ObjectMeta: metav1.ObjectMeta{Namespace: teamA, Name: "squatted"},
		Spec:       gpuv1alpha1.GPUWorkloadSpec{ModelName: "m", Suspend: true},
	}
	if err := tenant.Create(t.Context(), work); err != nil {
		t.Fatal(err)
	}
	squatter := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: teamA, Name: state.JobName(work, 0)},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "i"}},
		}}},
	}
	if err := tenant.Create(t.Context(), squatter); err != nil {
		t.Fatal(err)
	}
	resume := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"suspend":false}}`))
	if err := tenant.Patch(t.Context(), work, resume); err != nil {
		t.Fatal(err)
	}
	until(t, func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(work), work); err != nil {
			return err
		}
		if !strings.Contains(work.Status.Message, squatter.Name+" exists and is not this workload's") {
			return fmt.Errorf("phase %s, message %q", work.Status.Phase, work.Status.Message)
		}
		return nil
	})
	var job batchv1.Job
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(squatter), &job); err != nil || job.UID != squatter.UID || len(job.OwnerReferences) > 0 || job.ResourceVersion != squatter.ResourceVersion {
		t.Errorf("the squatter was touched: %+v (%v)", job.ObjectMeta, err)
	}
	if err := tenant.Delete(t.Context(), squatter, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
	until(t, func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(squatter), &job); err != nil {
			return err
		}
		if !metav1.IsControlledBy(&job, work) {
			return fmt.Errorf("Job %s is not the workload's", job.Name)
		}
		return nil
	})
}

// gpuNode makes a node that is ready, with GPUs.
func (w *world) gpuNode(t *testing.T, c client.Client) {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "gpu-node"}}
	if err := c.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	// Admission taints a new node until it is ready.
	node.Spec.Taints = nil
	if err := c.Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now()}}
	node.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("8"), "memory": resource.MustParse("64Gi"), "pods": resource.MustParse("100"), "nvidia.com/gpu": resource.MustParse("8")}
	node.Status.Capacity = node.Status.Allocatable
	if err := c.Status().Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
}

// until waits until check says that nothing is wrong any more.
func until(t *testing.T, check func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 40*time.Second, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%v; last seen: %v", err, last)
	}
}
