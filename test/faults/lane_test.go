package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

// stepWithin bounds each wait of a flow. A flow without faults takes seconds; on a machine with
// other work, with the manager dead half of the time, ten times as long.
const stepWithin = 90 * time.Second

// lane is where one flow runs: a namespace of its own, and three nodes that no other flow uses.
type lane struct {
	client.Client
	number    int
	namespace string
	dice      *rand.Rand
	// own is when the flow's own part began, zero for from the start.
	own time.Time
}

// openLane makes the namespace. Its name says what for.
func (r *rig) openLane(ctx context.Context, number int, namespace string, dice *rand.Rand) (*lane, error) {
	l := &lane{Client: r.Client, number: number, namespace: namespace, dice: dice}
	if err := l.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return nil, err
	}
	// Before the controllers have made its account, the namespace takes no pods.
	return l, l.await(ctx, "its default account", func(ctx context.Context) (bool, error) {
		err := l.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "default"}, &corev1.ServiceAccount{})
		return err == nil, client.IgnoreNotFound(err)
	})
}

// begins says that what comes now is what the flow is about; what came before is another's.
func (l *lane) begins() { l.own = time.Now() }

func (l *lane) await(ctx context.Context, what string, check func(context.Context) (bool, error)) error {
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, stepWithin, true, check)
	if err != nil {
		return fmt.Errorf("waiting for %s: %w", what, err)
	}
	return nil
}

// gang is a workload of pods with gpus GPUs each, on the nodes that all lanes share.
func (l *lane) gang(name string, pods, gpus int32, edits ...func(*gpuv1alpha1.GPUWorkload)) *gpuv1alpha1.GPUWorkload {
	w := &gpuv1alpha1.GPUWorkload{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: name},
		Spec: gpuv1alpha1.GPUWorkloadSpec{
			ModelName:   "llama2",
			GPUCount:    gpus,
			Parallelism: pods,
			RetryPolicy: gpuv1alpha1.RetryPolicy{MaxRetries: ptr.To[int32](2), BackoffSeconds: ptr.To[int32](1)},
			Template: &corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
					"sandbox.gpu.warp.dev/run-for": "300ms", "sandbox.gpu.warp.dev/start-after": "10ms",
				}},
				Spec: corev1.PodSpec{
					RestartPolicy: corev1.RestartPolicyNever,
					NodeSelector:  map[string]string{laneLabel: "pool"},
					Containers:    []corev1.Container{{Name: "train", Image: "example.com/train"}},
				},
			},
		},
	}
	for _, edit := range edits {
		edit(w)
	}
	return w
}

func simulate(key, value string) func(*gpuv1alpha1.GPUWorkload) {
	return func(w *gpuv1alpha1.GPUWorkload) {
		w.Spec.Template.Annotations["sandbox.gpu.warp.dev/"+key] = value
	}
}

// forever is longer than any test.
func forever(w *gpuv1alpha1.GPUWorkload) { simulate("run-for", "24h")(w) }

// here puts a workload on the lane's own nodes.
func (l *lane) here(w *gpuv1alpha1.GPUWorkload) {
	w.Spec.Template.Spec.NodeSelector = map[string]string{laneLabel: fmt.Sprint(l.number)}
}

// refuse has the scheduler, which alone knows of it, keep the workload off the lane's first
// node, and so overtakes every plan that uses it.
func (l *lane) refuse(ctx context.Context) (func(*gpuv1alpha1.GPUWorkload), error) {
	var mine corev1.NodeList
	if err := l.List(ctx, &mine, client.MatchingLabels{laneLabel: fmt.Sprint(l.number)}); err != nil {
		return nil, err
	}
	decoy := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: "decoy", Labels: map[string]string{"keep": "away"}},
		Spec:       corev1.PodSpec{NodeName: mine.Items[0].Name, Containers: []corev1.Container{{Name: "c", Image: "x"}}},
	}
	if err := l.Create(ctx, decoy); err != nil {
		return nil, err
	}
	return func(w *gpuv1alpha1.GPUWorkload) {
		l.here(w)
		w.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey:   "kubernetes.io/hostname",
				LabelSelector: &metav1.LabelSelector{MatchLabels: decoy.Labels},
			}},
		}}
	}, nil
}

// until follows a workload until it is as wanted. A workload that ended otherwise is not
// waited for.
func (l *lane) until(ctx context.Context, w *gpuv1alpha1.GPUWorkload, what string, wanted func(*gpuv1alpha1.GPUWorkload) bool) error {
	err := l.await(ctx, w.Name+" to be "+what, func(ctx context.Context) (bool, error) {
		if err := l.Get(ctx, client.ObjectKeyFromObject(w), w); err != nil {
			return false, err
		}
		if wanted(w) {
			return true, nil
		}
		if w.Status.Phase.Finished() {
			return false, fmt.Errorf("it ended %s: %s", w.Status.Phase, w.Status.Message)
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("%w; it is %s: %s (attempt %d, Job %q, %+v)", err, w.Status.Phase, w.Status.Message, w.Status.Attempt, w.Status.JobName, w.Status.Pods)
	}
	return nil
}

func (l *lane) untilPhase(ctx context.Context, w *gpuv1alpha1.GPUWorkload, phase gpuv1alpha1.WorkloadPhase) error {
	return l.until(ctx, w, string(phase), func(w *gpuv1alpha1.GPUWorkload) bool { return w.Status.Phase == phase })
}

// untilUp waits until every pod is bound, which a short run may have gone past.
func (l *lane) untilUp(ctx context.Context, w *gpuv1alpha1.GPUWorkload) error {
	return l.until(ctx, w, "up", func(w *gpuv1alpha1.GPUWorkload) bool {
		return w.Status.Phase == gpuv1alpha1.PhaseRunning || meta.IsStatusConditionTrue(w.Status.Conditions, gpuv1alpha1.ConditionScheduled)
	})
}

// edit changes a workload as a person does, again if somebody was faster.
func (l *lane) edit(ctx context.Context, w *gpuv1alpha1.GPUWorkload, edit func(*gpuv1alpha1.GPUWorkload)) error {
	before := w.DeepCopy()
	edit(w)
	return l.Patch(ctx, w, client.MergeFrom(before))
}

// ends holds the workload's end to what the flow promises.
func (l *lane) ends(w *gpuv1alpha1.GPUWorkload, phase gpuv1alpha1.WorkloadPhase, retries, pods int32) error {
	s := w.Status
	if s.Phase != phase || s.RetryCount != retries || s.Pods.Succeeded != pods {
		return fmt.Errorf("%s ended %s with %d retries and %d succeeded pods, want %s, %d and %d: %s",
			w.Name, s.Phase, s.RetryCount, s.Pods.Succeeded, phase, retries, pods, s.Message)
	}
	return nil
}

func (l *lane) pods(ctx context.Context, uid string) ([]corev1.Pod, error) {
	var list corev1.PodList
	err := l.List(ctx, &list, client.InNamespace(l.namespace), client.MatchingLabels{gpuv1alpha1.WorkloadUIDLabel: uid})
	return list.Items, err
}

// gone waits until nothing is left of a workload.
func (l *lane) gone(ctx context.Context, w *gpuv1alpha1.GPUWorkload) error {
	uid := string(w.UID)
	return l.await(ctx, w.Name+" and all of it to be gone", func(ctx context.Context) (bool, error) {
		var now gpuv1alpha1.GPUWorkload
		err := l.Get(ctx, client.ObjectKeyFromObject(w), &now)
		if client.IgnoreNotFound(err) != nil || err == nil && now.UID == w.UID {
			return false, client.IgnoreNotFound(err)
		}
		var jobs batchv1.JobList
		if err := l.List(ctx, &jobs, client.InNamespace(l.namespace), client.MatchingLabels{gpuv1alpha1.WorkloadUIDLabel: uid}); err != nil {
			return false, err
		}
		pods, err := l.pods(ctx, uid)
		return len(jobs.Items)+len(pods) == 0, err
	})
}

// remove deletes a workload as a person does.
func (l *lane) remove(ctx context.Context, w *gpuv1alpha1.GPUWorkload) error {
	err := l.Delete(ctx, w)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// all runs steps until one fails.
func all(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

var errNoPod = errors.New("there is no such pod")

func ignoreExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
