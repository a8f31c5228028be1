package scheduler

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	toolscache "k8s.io/client-go/tools/cache"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/internal/state"
)

// feed connects State and roster to the scheduler's own informers, so that there is no second copy
// of any object, and returns a function that tells whether all that was there at the start has
// been taken in.
func (d *desk) feed(_ context.Context, factory informers.SharedInformerFactory) (func() bool, error) {
	nodes, err := factory.Core().V1().Nodes().Informer().AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    d.onNode,
		UpdateFunc: func(_, obj any) { d.onNode(obj) },
		DeleteFunc: func(obj any) {
			if n, ok := last(obj).(*corev1.Node); ok {
				d.state.DropNode(n.Name)
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watching nodes: %w", err)
	}
	pods, err := factory.Core().V1().Pods().Informer().AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    d.onPod,
		UpdateFunc: d.changePod,
		DeleteFunc: func(obj any) {
			if p, ok := last(obj).(*corev1.Pod); ok {
				d.dropPod(p)
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watching pods: %w", err)
	}
	return func() bool { return nodes.HasSynced() && pods.HasSynced() }, nil
}

func (d *desk) onNode(obj any) {
	if n, ok := obj.(*corev1.Node); ok && d.state.SetNode(n) {
		d.tidings()
	}
}

func (d *desk) changePod(old, obj any) {
	was, okWas := old.(*corev1.Pod)
	now, okNow := obj.(*corev1.Pod)
	// A watch that was interrupted tells of a pod that replaced another as of one change.
	if okWas && okNow && was.UID != now.UID {
		d.dropPod(was)
	}
	d.onPod(obj)
	if !okWas || !okNow || !asksAnew(was, now) {
		return
	}
	if key, ok := groupKey(now); ok {
		d.releaseNamed(key)
	}
	d.activate(0, now)
}

func (d *desk) onPod(obj any) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return
	}
	freed := d.state.SetPod(pod)
	// A member of a GPUWorkload holds the node that the manager gave it from the moment that it
	// says so: the manager's own promise is not seen here.
	if node := state.PlannedNode(pod); node != "" && promised(pod) {
		d.state.Assume(pod, node)
	}
	if freed {
		d.tidings()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.noteGroup(pod, false)
	g := d.enter(pod)
	if g == nil {
		if a := d.alone[pod.UID]; a != nil && (pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil) {
			delete(d.alone, pod.UID)
		}
		return
	}
	d.gathered(g)
}

// asksAnew tells whether a pod that waits asks for something else than before.
func asksAnew(was, now *corev1.Pod) bool {
	if now.Spec.NodeName != "" || now.DeletionTimestamp != nil || !concerns(now) {
		return false
	}
	return !maps.Equal(was.Annotations, now.Annotations) || !maps.Equal(was.Labels, now.Labels) ||
		len(was.Spec.SchedulingGates) != len(now.Spec.SchedulingGates)
}

// dropPod forgets a pod that is gone.
func (d *desk) dropPod(pod *corev1.Pod) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forget(pod)
}

// gone tells whether the pod is no more, or about to end, although the scheduler still works on a
// copy of it: a deletion is told while the pod is in its cycle, and not again after it. As the
// informer's store changes before its handlers run, a pod that is entered under the lock since it
// is there will be dropped.
func (d *desk) gone(pod *corev1.Pod) bool {
	now, err := d.pods.Pods(pod.Namespace).Get(pod.Name)
	return err != nil || now.UID != pod.UID || now.DeletionTimestamp != nil || state.Finished(now)
}

// sweep forgets pods that are gone and that no deletion will be told of. The caller holds the lock.
func (d *desk) sweep() {
	var list []*corev1.Pod
	for _, g := range d.roster.gangs {
		for _, m := range g.members {
			list = append(list, m.pod)
		}
	}
	for _, a := range d.alone {
		list = append(list, a.pod)
	}
	for _, g := range d.groups {
		list = slices.AppendSeq(list, maps.Values(g.pods))
	}
	for _, pod := range list {
		if d.gone(pod) {
			d.forget(pod)
		}
	}
}

// forget drops a pod, with what it holds. The caller holds the lock: a plan made meanwhile would
// hold something for it again.
func (d *desk) forget(pod *corev1.Pod) {
	if d.state.DropPod(pod.UID) {
		d.tidings()
	}
	delete(d.alone, pod.UID)
	d.noteGroup(pod, true)
	d.ended(pod.UID)
	if g := d.roster.drop(pod.UID, d.clock.Now()); g != nil {
		d.left(g)
	}
}

// promised tells whether the manager may have given the pod its node: it makes Jobs, and opens the
// gate of their pods with that. Labels alone say nothing: whoever makes a pod writes them.
func promised(pod *corev1.Pod) bool {
	if pod.Labels[gpuv1alpha1.WorkloadUIDLabel] == "" || pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil || len(pod.Spec.SchedulingGates) > 0 {
		return false
	}
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Kind == "Job"
}

// enter takes in a pod as the roster does, and looks after the gang that it leaves with that. The
// caller holds the lock.
func (d *desk) enter(pod *corev1.Pod) *gang {
	was := d.roster.of[pod.UID]
	var m *member
	if was != nil {
		m = was.members[pod.UID]
	}
	g := d.roster.note(pod, d.clock.Now())
	if was == nil || was == g {
		return g
	}
	// What is being bound is the API server's to say.
	if m.phase == planned || m.phase == reserved {
		d.state.Forget(pod.UID)
		if waiting := d.handle.GetWaitingPod(pod.UID); waiting != nil {
			waiting.Reject(Name, fmt.Sprintf("the pod left gang %s", was.name.Name))
		}
		d.tidings()
	}
	d.left(was)
	return g
}

// left looks after a gang that a pod just left: those that have their node must neither go without
// it nor wait for it. The caller holds the lock.
func (d *desk) left(g *gang) {
	if len(g.members) == 0 {
		return
	}
	if !g.complete(d.clock.Now(), d.args.TellAfter.Duration) || g.count(planned) == 0 && g.count(reserved) > 0 {
		d.giveBack(g, "a pod of the gang is gone")
	}
	d.gathered(g)
}

// gathered sends for the gang's leader if the gang is complete and nobody speaks for it yet. The
// caller holds the lock.
func (d *desk) gathered(g *gang) {
	if _, err := g.ask(); err != nil || !g.complete(d.clock.Now(), d.args.TellAfter.Duration) || g.count(planned, reserved) > 0 {
		return
	}
	leader := g.leader()
	if leader == nil || g.refusal != "" || g.called == leader.pod.UID {
		return
	}
	g.called = leader.pod.UID
	d.activate(0, leader.pod)
}

// last unwraps what an informer hands over when it missed a deletion and knows only the last
// state it saw.
func last(obj any) any {
	if gone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		return gone.Obj
	}
	return obj
}
