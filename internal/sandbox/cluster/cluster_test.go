package cluster

import (
	"context"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes/fake"
)

func profile(t *testing.T, name string) Profile {
	t.Helper()
	p, err := ProfileNamed(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// gpus is how many of a resource a node offers.
func gpus(node *corev1.Node, resource corev1.ResourceName) int64 {
	quantity := node.Status.Allocatable[resource]
	return quantity.Value()
}

func TestEveryProfileMakesLegalNodes(t *testing.T) {
	for _, p := range Profiles() {
		t.Run(p.Name, func(t *testing.T) {
			names := map[string]bool{}
			addresses := map[string]bool{}
			for _, node := range p.Nodes(1500, 8, time.Now()) {
				names[node.Name] = true
				for key, value := range node.Labels {
					if errs := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...); len(errs) > 0 {
						t.Errorf("label %s=%s: %v", key, value, errs)
					}
				}
				if _, err := netip.ParsePrefix(node.Spec.PodCIDR); err != nil {
					t.Error(err)
				}
				addresses[node.Spec.PodCIDR] = true
				addresses[node.Status.Addresses[0].Address] = true
			}
			if len(names) != 1500 || len(addresses) != 3000 {
				t.Errorf("1500 nodes have %d names and %d addresses and ranges", len(names), len(addresses))
			}
		})
	}
}

func TestDGXNode(t *testing.T) {
	node := profile(t, "dgx-h100").Nodes(8, 8, time.Now())[0]
	if node.Name != "gpu-node-0001" {
		t.Errorf("the first node is %s", node.Name)
	}
	if n := gpus(node, "nvidia.com/gpu"); n != 8 {
		t.Errorf("it offers %d GPUs", n)
	}
	if len(node.Spec.Taints) > 0 {
		t.Errorf("it is tainted: %v", node.Spec.Taints)
	}
	for key, want := range map[string]string{
		"nvidia.com/gpu.product":        "NVIDIA-H100-80GB-HBM3",
		"nvidia.com/gpu.memory":         "81559",
		"nvidia.com/gpu.count":          "8",
		"nvidia.com/gpu.family":         "hopper",
		"nvidia.com/gpu.compute.major":  "9",
		"nvidia.com/gpu.compute.minor":  "0",
		"nvidia.com/mig.capable":        "true",
		"topology.kubernetes.io/region": "sandbox",
		"topology.kubernetes.io/zone":   "sandbox-a",
		"gpu.warp.dev/spine":            "spine-01",
		"gpu.warp.dev/leaf":             "leaf-001",
		"kubernetes.io/hostname":        "gpu-node-0001",
	} {
		if got := node.Labels[key]; got != want {
			t.Errorf("label %s is %q, want %q", key, got, want)
		}
	}
}

func TestGPUsPerNodeIsToldByResourceAndLabel(t *testing.T) {
	node := profile(t, "dgx-a100").Nodes(1, 4, time.Now())[0]
	if n, label := gpus(node, "nvidia.com/gpu"), node.Labels["nvidia.com/gpu.count"]; n != 4 || label != "4" {
		t.Errorf("it offers %d GPUs and is labelled %q", n, label)
	}
}

func TestNetworkHas16NodesALeafAnd32LeavesASpine(t *testing.T) {
	leaves, spines := map[string]int{}, map[string]map[string]bool{}
	cheap := 0
	nodes := profile(t, "dgx-h100").Nodes(1024, 8, time.Now())
	for _, node := range nodes {
		leaf, spine := node.Labels["gpu.warp.dev/leaf"], node.Labels["gpu.warp.dev/spine"]
		leaves[leaf]++
		if spines[spine] == nil {
			spines[spine] = map[string]bool{}
		}
		spines[spine][leaf] = true
		if node.Labels["gpu-orchestrator/cheap-node"] == "true" {
			cheap++
		}
	}
	if len(leaves) != 64 || len(spines) != 2 {
		t.Errorf("there are %d leaves and %d spines", len(leaves), len(spines))
	}
	for leaf, n := range leaves {
		if n != 16 {
			t.Errorf("%s has %d nodes", leaf, n)
		}
	}
	for spine, below := range spines {
		if len(below) != 32 {
			t.Errorf("%s has %d leaves", spine, len(below))
		}
	}
	if cheap != 256 {
		t.Errorf("%d of 1024 nodes are cheap, want a quarter", cheap)
	}
}

func TestMixedProfileHasEveryKind(t *testing.T) {
	for _, n := range []int{8, 16, 100} {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			offered := map[corev1.ResourceName]int{}
			products := map[string]bool{}
			for _, node := range profile(t, "mixed").Nodes(n, 8, time.Now()) {
				for name := range node.Status.Allocatable {
					if strings.Contains(string(name), "/") {
						offered[name]++
					}
				}
				products[node.Labels["nvidia.com/gpu.product"]] = true
			}
			for _, name := range []corev1.ResourceName{"nvidia.com/gpu", "nvidia.com/gpu.shared", "amd.com/gpu", "gpu.intel.com/i915"} {
				if offered[name] == 0 {
					t.Errorf("no node offers %s", name)
				}
			}
			for _, product := range []string{"NVIDIA-H100-80GB-HBM3", "NVIDIA-A100-SXM4-80GB", "NVIDIA-A100-SXM4-40GB", "NVIDIA-L4", "Tesla-T4"} {
				if !products[product] {
					t.Errorf("no node has a %s", product)
				}
			}
		})
	}
}

func TestSharedGPUsAreOfferedAsReplicas(t *testing.T) {
	for _, node := range profile(t, "mixed").Nodes(8, 8, time.Now()) {
		if node.Labels["nvidia.com/gpu.sharing-strategy"] != "time-slicing" {
			continue
		}
		if n := gpus(node, "nvidia.com/gpu.shared"); n != 16 {
			t.Errorf("4 GPUs shared by 4 are offered as %d", n)
		}
		if _, whole := node.Status.Allocatable["nvidia.com/gpu"]; whole {
			t.Error("a shared node offers whole GPUs as well")
		}
		if count, replicas := node.Labels["nvidia.com/gpu.count"], node.Labels["nvidia.com/gpu.replicas"]; count != "4" || replicas != "4" {
			t.Errorf("it is labelled %s GPUs, %s replicas", count, replicas)
		}
		return
	}
	t.Error("no node is time-sliced")
}

func TestUnknownProfileNamesThoseThereAre(t *testing.T) {
	_, err := ProfileNamed("dgx-h1000")
	if err == nil || !strings.Contains(err.Error(), "dgx-h100,") || !strings.Contains(err.Error(), "mixed") {
		t.Errorf("the error is %v", err)
	}
}

// API servers differ from the fake one in much, but not in what a watch tells.
func TestAwaitReadyWaitsForTheLastNode(t *testing.T) {
	client := fake.NewClientset()
	nodes := profile(t, "dgx-h100").Nodes(2, 8, time.Now())
	for _, node := range nodes {
		node.Status.Conditions = nil
	}
	if err := Create(t.Context(), client, nodes); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- AwaitReady(t.Context(), client, len(nodes)) }()

	for _, node := range nodes {
		node = node.DeepCopy()
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		if _, err := client.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestNodeTakesPodsOnceItIsReadyAndNotTainted(t *testing.T) {
	ready := []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	notReady := []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}
	tainted := []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}}
	for name, c := range map[string]struct {
		conditions []corev1.NodeCondition
		taints     []corev1.Taint
		want       bool
	}{
		"new":                       {nil, tainted, false},
		"not ready":                 {notReady, nil, false},
		"ready, not yet untainted":  {ready, tainted, false},
		"ready":                     {ready, nil, true},
		"ready, with another taint": {ready, []corev1.Taint{{Key: "nvidia.com/gpu"}}, true},
	} {
		node := &corev1.Node{Spec: corev1.NodeSpec{Taints: c.taints}, Status: corev1.NodeStatus{Conditions: c.conditions}}
		if got := schedulable(node); got != c.want {
			t.Errorf("a node that is %s takes pods: %v", name, got)
		}
	}
}

func TestAwaitReadyTellsHowFarItCame(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	err := AwaitReady(ctx, fake.NewClientset(), 3)
	if err == nil || !strings.Contains(err.Error(), "0 of 3") {
		t.Errorf("the error is %v", err)
	}
}
