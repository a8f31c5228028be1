package cluster

import (
	"fmt"
	"maps"
	"net/netip"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

// The network of the simulated data centre, a two-level fat tree.
const (
	nodesPerLeaf   = 16
	leavesPerSpine = 32
	spinesPerZone  = 2
	// cheapEvery makes one node in four a cheap one.
	cheapEvery = 4
)

// Nodes builds n nodes of a profile, named gpu-node-0001 and so on. gpus is the
// number of GPUs of each machine whose kind does not fix it.
//
// They say that they have been Ready since now: nodes that became so one by one
// would be written several times each before they take pods, which for a thousand is
// the longest part of the start.
func (p Profile) Nodes(n, gpus int, now time.Time) []*corev1.Node {
	nodes := make([]*corev1.Node, n)
	for i := range nodes {
		nodes[i] = p.machineOf(i, n).node(i, gpus)
		nodes[i].Status.Conditions = healthy(metav1.NewTime(now))
	}
	return nodes
}

// healthy are the conditions that a kubelet without troubles reports.
func healthy(now metav1.Time) []corev1.NodeCondition {
	return []corev1.NodeCondition{
		condition(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady", now),
		condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory", now),
		condition(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasSufficientDisk", now),
		condition(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID", now),
		condition(corev1.NodeNetworkUnavailable, corev1.ConditionFalse, "RouteCreated", now),
	}
}

func condition(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason string, now metav1.Time) corev1.NodeCondition {
	return corev1.NodeCondition{Type: kind, Status: status, Reason: reason, LastHeartbeatTime: now, LastTransitionTime: now}
}

func (m machine) node(i, gpus int) *corev1.Node {
	if m.gpus > 0 {
		gpus = m.gpus
	}
	name := fmt.Sprintf("gpu-node-%04d", i+1)
	labels := map[string]string{
		corev1.LabelHostname:           name,
		corev1.LabelOSStable:           "linux",
		corev1.LabelArchStable:         "amd64",
		corev1.LabelInstanceTypeStable: m.instanceType,
		// The controllers would add these two, with a write for each node.
		"beta.kubernetes.io/os":   "linux",
		"beta.kubernetes.io/arch": "amd64",
	}
	maps.Copy(labels, m.labels(gpus))
	maps.Copy(labels, position(i))
	if i%cheapEvery == cheapEvery-1 {
		labels[v1alpha1.CheapNodeLabel] = "true"
	}
	resources := m.resources(gpus)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Labels:      labels,
			Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
		},
		Spec: corev1.NodeSpec{PodCIDR: podCIDR(i), PodCIDRs: []string{podCIDR(i)}},
		Status: corev1.NodeStatus{
			Phase:       corev1.NodeRunning,
			Capacity:    resources,
			Allocatable: resources.DeepCopy(),
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: address(i)},
				{Type: corev1.NodeHostName, Address: name},
			},
			NodeInfo: corev1.NodeSystemInfo{
				Architecture:            "amd64",
				OperatingSystem:         "linux",
				KernelVersion:           "simulated",
				OSImage:                 "simulated",
				ContainerRuntimeVersion: "kwok://simulated",
				KubeletVersion:          "kwok",
			},
		},
	}
}

// position labels the i-th node with its place. Numbers run through the whole
// cluster, so that a leaf's name alone says which leaf it is.
func position(i int) map[string]string {
	leaf := i / nodesPerLeaf
	spine := leaf / leavesPerSpine
	zone := spine / spinesPerZone
	return map[string]string{
		corev1.LabelTopologyRegion: "sandbox",
		corev1.LabelTopologyZone:   "sandbox-" + letters(zone),
		v1alpha1.SpineLabel:        fmt.Sprintf("spine-%02d", spine+1),
		v1alpha1.LeafLabel:         fmt.Sprintf("leaf-%03d", leaf+1),
	}
}

// letters counts a, b, ..., z, aa, ab, as zones are named.
func letters(i int) string {
	var b strings.Builder
	if i >= 26 {
		b.WriteString(letters(i/26 - 1))
	}
	b.WriteByte(byte('a' + i%26))
	return b.String()
}

// podCIDR gives each node 256 addresses of 11.0.0.0/8, which holds 65,536 nodes.
func podCIDR(i int) string {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{11, byte(i >> 8), byte(i), 0}), 24).String()
}

// address is the node's own, in 10.64.0.0/10.
func address(i int) string {
	return netip.AddrFrom4([4]byte{10, byte(64 + i>>16), byte(i >> 8), byte(i)}).String()
}
