package scheduler

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/reyisjones/gpu-orchestrator/internal/state"
)

// Name is the plugin's name in configurations.
const Name = "GPUPlacement"

// Plugin is the engine in one profile of a kube-scheduler. What it knows it shares with the other
// profiles.
type Plugin struct {
	*desk
	handle fwk.Handle
	// stock places PodGroups without GPUs.
	stock fwk.PlacementGeneratePlugin
}

var (
	_ fwk.QueueSortPlugin         = &Plugin{}
	_ fwk.PreEnqueuePlugin        = &Plugin{}
	_ fwk.PreFilterPlugin         = &Plugin{}
	_ fwk.FilterPlugin            = &Plugin{}
	_ fwk.PostFilterPlugin        = &Plugin{}
	_ fwk.ReservePlugin           = &Plugin{}
	_ fwk.PermitPlugin            = &Plugin{}
	_ fwk.PostBindPlugin          = &Plugin{}
	_ fwk.EnqueueExtensions       = &Plugin{}
	_ fwk.SignPlugin              = &Plugin{}
	_ fwk.PlacementGeneratePlugin = &Plugin{}
)

// NewFactory returns the plugin's factory. All profiles that it makes plugins for share one view
// of the cluster and one queue of gangs, as they share the scheduler's.
func NewFactory() frameworkruntime.PluginFactory {
	var (
		mu     sync.Mutex
		shared *desk
	)
	return func(ctx context.Context, obj runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		args, err := decodeArgs(obj)
		if err != nil {
			return nil, err
		}
		mu.Lock()
		defer mu.Unlock()
		if shared == nil {
			if shared, err = newDesk(ctx, args, handle); err != nil {
				return nil, err
			}
		}
		if !reflect.DeepEqual(shared.args, args) {
			return nil, fmt.Errorf("checking pluginConfig of %s: profile %s has other args than the profiles before it: give all profiles the same", Name, handle.ProfileName())
		}
		stock, err := newStockGenerator(ctx, handle)
		if err != nil {
			return nil, err
		}
		return &Plugin{desk: shared, handle: handle, stock: stock}, nil
	}
}

// Name implements fwk.Plugin.
func (p *Plugin) Name() string { return Name }

// EventsToRegister names no event. The scheduler's own handlers run beside ours, so that a hint may
// be asked before State has taken the event in, and its answer cannot tell what the engine would
// say. The desk wakes who was refused itself, once the engine says yes: see waker.go.
func (p *Plugin) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return nil, nil
}

// SignPod lets the scheduler reuse what it found for the pod before only where the engine has no
// say: a plan depends on what was planned before.
func (p *Plugin) SignPod(_ context.Context, pod *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	if concerns(pod) {
		return nil, fwk.NewStatus(fwk.Unschedulable, "the engine places it")
	}
	return nil, nil
}

// concerns tells whether the engine places the pod.
func concerns(pod *corev1.Pod) bool {
	if _, ok := gangKey(pod); ok {
		return true
	}
	name, _ := state.GPUOf(pod)
	return name != ""
}

// Less orders the queue: by priority, then by age, where a gang is as old as its first pod. At equal
// age pods by themselves come first, then one gang after the other, so that the members of a gang
// are beside each other. A pod by itself is no different from others of its priority and age.
func (p *Plugin) Less(a, b fwk.QueuedPodInfo) bool {
	podA, podB := a.GetPodInfo().GetPod(), b.GetPodInfo().GetPod()
	if x, y := corev1helpers.PodPriority(podA), corev1helpers.PodPriority(podB); x != y {
		return x > y
	}
	keyA, gangA := gangKey(podA)
	keyB, gangB := gangKey(podB)
	if ageA, ageB := p.age(podA, a.GetTimestamp()), p.age(podB, b.GetTimestamp()); !ageA.Equal(ageB) {
		return ageA.Before(ageB)
	}
	switch {
	case gangA != gangB:
		return gangB
	case !gangA:
		return false
	case keyA != keyB:
		return keyA.String() < keyB.String()
	}
	return byRank(&member{pod: podA, rank: rank(podA)}, &member{pod: podB, rank: rank(podB)}) < 0
}

// age returns since when the pod's gang is there; for a pod by itself that is the given time.
func (p *Plugin) age(pod *corev1.Pod, alone time.Time) time.Time {
	key, ok := gangKey(pod)
	if !ok {
		return alone
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if g := p.roster.gangs[key]; g != nil {
		return g.since
	}
	return pod.CreationTimestamp.Time
}
