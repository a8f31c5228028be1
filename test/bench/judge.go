package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

// verdict is what a placement is worth, read from nodes and bound pods alone: nobody's own word
// counts, and the same eyes look at every side.
type verdict struct {
	// gangs is how many gangs are bound whole, torn how many only in part; local is how many of
	// the whole ones are in one leaf, leaves how many leaves these have in the mean.
	gangs, torn, local int
	leaves             float64
	// idle is how many GPUs are, wholeNodes how many of these are on nodes that are all idle,
	// wholeLeaves how many leaves are all idle.
	idle, wholeNodes, wholeLeaves int
	// fragmentation is the share of the idle GPUs that pods of expected sizes cannot use, as
	// topology_fragmentation_ratio tells it.
	fragmentation float64
}

// judge looks at what is bound. More GPUs held on a node than it has are an error: nothing that
// was measured then is worth anything.
func (c *sandbox) judge(ctx context.Context, units []unit) (verdict, error) {
	var nodes corev1.NodeList
	var all corev1.PodList
	if err := c.List(ctx, &nodes); err != nil {
		return verdict{}, fmt.Errorf("listing nodes: %w", err)
	}
	if err := c.List(ctx, &all, client.InNamespace(namespace)); err != nil {
		return verdict{}, fmt.Errorf("listing pods: %w", err)
	}
	return judge(nodes.Items, all.Items, units)
}

func judge(nodes []corev1.Node, all []corev1.Pod, units []unit) (verdict, error) {
	resources := cluster.NewResources(gpuv1alpha1.DefaultResourceName)
	gpu := resources.Index(gpuv1alpha1.DefaultResourceName)
	world := map[string]*cluster.Node{}
	leafOf := map[string]string{}
	for i := range nodes {
		n := &nodes[i]
		leafOf[n.Name] = n.Labels["gpu.warp.dev/leaf"]
		world[n.Name] = &cluster.Node{
			Machine: &cluster.Machine{Name: n.Name, Allocatable: amounts(n.Status.Allocatable)},
			Used:    cluster.Vector{0, 0, 0, 0},
		}
	}
	leaves, count := map[string]map[string]bool{}, map[string]int{}
	for i := range all {
		p := &all[i]
		n := world[p.Spec.NodeName]
		if n == nil || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		for k := range p.Spec.Containers {
			n.Used = n.Used.Add(amounts(p.Spec.Containers[k].Resources.Requests))
		}
		if n.Used.At(gpu) > n.Allocatable.At(gpu) {
			return verdict{}, fmt.Errorf("node %s is oversold: %d of %d GPUs", p.Spec.NodeName, n.Used.At(gpu), n.Allocatable.At(gpu))
		}
		name := unitOf(p.Labels)
		count[name]++
		if leaves[name] == nil {
			leaves[name] = map[string]bool{}
		}
		leaves[name][leafOf[p.Spec.NodeName]] = true
	}
	var v verdict
	for _, u := range units {
		switch n := count[u.name]; {
		case !u.gang() || n == 0:
		case n < u.pods:
			v.torn++
		default:
			v.gangs++
			v.leaves += float64(len(leaves[u.name]))
			if len(leaves[u.name]) == 1 {
				v.local++
			}
		}
	}
	if v.gangs > 0 {
		v.leaves /= float64(v.gangs)
	}
	v.measureIdle(world, leafOf, gpu)
	return v, nil
}

func (v *verdict) measureIdle(world map[string]*cluster.Node, leafOf map[string]string, gpu int) {
	scoring := placement.DefaultScoring()
	busy, sum := map[string]bool{}, 0.0
	for name, n := range world {
		idle, unusable := placement.Fragmentation(n, gpu, scoring)
		v.idle += int(idle)
		sum += unusable
		if n.Used.At(gpu) == 0 {
			v.wholeNodes += int(idle)
		} else {
			busy[leafOf[name]] = true
		}
	}
	seen := map[string]bool{}
	for _, leaf := range leafOf {
		if !seen[leaf] && !busy[leaf] {
			v.wholeLeaves++
		}
		seen[leaf] = true
	}
	if v.idle > 0 {
		v.fragmentation = sum / float64(v.idle)
	}
}

// amounts are what the benchmark's pods ask for.
func amounts(list corev1.ResourceList) cluster.Vector {
	gpus := list[gpuv1alpha1.DefaultResourceName]
	return cluster.Vector{list.Cpu().MilliValue(), list.Memory().Value(), 0, gpus.Value()}
}
