package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

// One cluster with our scheduler, and what goes wrong with gangs.
func TestGangsOnOurScheduler(t *testing.T) {
	c := ownCluster(t, "--nodes=32", "--scheduler=second", "--no-manager")
	t.Run("room for half is room for none", func(t *testing.T) { gangWaitsForAllItsRoom(t, c) })
	t.Run("gangs say what is wrong with them", func(t *testing.T) { gangsSayWhatIsWrong(t, c) })
	t.Run("a pod that can go nowhere", func(t *testing.T) { gangWaitsForItsWorstPod(t, c) })
	t.Run("a member is replaced beside the others", func(t *testing.T) { memberIsReplaced(t, c) })
	t.Run("priority evicts whole gangs", func(t *testing.T) { priorityEvictsGangs(t, c) })
	t.Run("PodGroups say what they lack", func(t *testing.T) { podGroupsSayWhatTheyLack(t, c) })
	lacksNoRight(t, c)
}

// A gang with room for half of it holds nothing: pods beside it are placed, it is refused once, and
// placed when the room is there.
func gangWaitsForAllItsRoom(t *testing.T, c *cluster) {
	ns := c.namespace(t)
	selector, _ := c.nodes(t, 8)
	for i := range 4 {
		c.make(t, gpuPod(ns, fmt.Sprintf("filler-%d", i), 8, selector))
	}
	eventually(t, func() error { return c.allBound(t, ns, 4) })
	c.make(t, gang(ns, "big", 8, 8, selector)...)
	c.awaitTold(t, ns, "big-0", "gang big")
	for i := range 4 {
		c.make(t, gpuPod(ns, fmt.Sprintf("beside-%d", i), 8, selector))
	}
	eventually(t, func() error { return c.allBound(t, ns, 8) })
	// News of pods that cannot help.
	c.make(t, gpuPod(ns, "small", 0, selector))
	eventually(t, func() error { return c.allBound(t, ns, 9) })
	if bound := c.boundOf(t, ns, "big"); len(bound) > 0 {
		t.Fatalf("%d members are bound where there is no room for all", len(bound))
	}
	for i := 1; i < 8; i++ {
		if said := c.told(t, ns, fmt.Sprintf("big-%d", i)); said != "" {
			t.Errorf("member %d was refused beside its leader: %s", i, said)
		}
	}
	if n := c.refusals(t, ns, "big-"); n != 1 {
		t.Errorf("the gang was refused %d times before there was more room", n)
	}
	if err := c.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(ns), client.GracePeriodSeconds(0),
		client.MatchingLabelsSelector{Selector: without(gpuv1alpha1.GangLabel)}); err != nil {
		t.Fatal(err)
	}
	c.awaitBound(t, ns, "big", 8)
}

// without selects what does not have the label.
func without(label string) labels.Selector {
	r, err := labels.NewRequirement(label, selection.DoesNotExist, nil)
	if err != nil {
		panic(err) // Only a malformed label is refused.
	}
	return labels.NewSelector().Add(*r)
}

// refusals counts how often pods with the prefix were refused, by their events.
func (c *cluster) refusals(t *testing.T, namespace, prefix string) int {
	t.Helper()
	var list eventsv1.EventList
	if err := c.List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range list.Items {
		if e.Reason == "FailedScheduling" && strings.HasPrefix(e.Regarding.Name, prefix) {
			n++
			if e.Series != nil {
				n += int(e.Series.Count) - 1
			}
		}
	}
	return n
}

// allBound tells whether so many pods of the namespace are bound.
func (c *cluster) allBound(t *testing.T, namespace string, want int) error {
	t.Helper()
	var list corev1.PodList
	if err := c.List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
		return err
	}
	bound := 0
	for _, p := range list.Items {
		if p.Spec.NodeName != "" {
			bound++
		}
	}
	if bound != want {
		return fmt.Errorf("%d pods are bound, want %d", bound, want)
	}
	return nil
}

func gangsSayWhatIsWrong(t *testing.T, c *cluster) {
	ns := c.namespace(t)
	selector, _ := c.nodes(t, 4)
	short := gang(ns, "short", 3, 1, selector)
	c.make(t, short[:2]...)
	quarrel := gang(ns, "quarrel", 2, 1, selector)
	quarrel[1].Labels[gpuv1alpha1.GangSizeLabel] = "3"
	c.make(t, quarrel...)
	number := gang(ns, "number", 1, 1, selector)
	number[0].Labels[gpuv1alpha1.GangSizeLabel] = "many"
	level := gpuPod(ns, "level", 1, selector)
	level.Annotations[gpuv1alpha1.RequiredLevelAnnotation] = "galaxy"
	strategy := gpuPod(ns, "strategy", 1, selector)
	strategy.Annotations[gpuv1alpha1.StrategyAnnotation] = "astrology"
	c.make(t, append(number, level, strategy)...)
	// Nobody else is disturbed.
	c.make(t, gang(ns, "fine", 4, 1, selector)...)
	c.awaitBound(t, ns, "fine", 4)

	c.awaitTold(t, ns, "short-0", "waiting for 1 of 3 pods of gang short")
	c.awaitTold(t, ns, "short-1", "waiting for 1 of 3 pods of gang short")
	c.awaitTold(t, ns, "quarrel-0", "contradicts itself")
	c.awaitTold(t, ns, "quarrel-1", "contradicts itself")
	c.awaitTold(t, ns, "number-0", gpuv1alpha1.GangSizeLabel)
	c.awaitTold(t, ns, "level", `no topology level "galaxy"`)
	c.awaitTold(t, ns, "strategy", "astrology")

	right := level.DeepCopy()
	right.Annotations[gpuv1alpha1.RequiredLevelAnnotation] = "leaf"
	if err := c.Patch(t.Context(), right, client.MergeFrom(level)); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error { return c.allBound(t, ns, 5) })
	c.make(t, short[2])
	c.awaitBound(t, ns, "short", 3)
	mended := quarrel[1].DeepCopy()
	mended.Labels[gpuv1alpha1.GangSizeLabel] = "2"
	if err := c.Patch(t.Context(), mended, client.MergeFrom(quarrel[1])); err != nil {
		t.Fatal(err)
	}
	c.awaitBound(t, ns, "quarrel", 2)
}

// A member whose volume does not exist is refused wherever it goes: its gang holds nothing for it,
// and starts when the volume is there.
func gangWaitsForItsWorstPod(t *testing.T, c *cluster) {
	ns := c.namespace(t)
	selector, _ := c.nodes(t, 2)
	pods := gang(ns, "worst", 4, 4, selector)
	pods[2].Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "later"},
	}}}
	c.make(t, pods...)
	c.awaitTold(t, ns, "worst-2", "later")
	// The room is free for others meanwhile.
	c.make(t, gang(ns, "others", 4, 4, selector)...)
	c.awaitBound(t, ns, "others", 4)
	if bound := c.boundOf(t, ns, "worst"); len(bound) > 0 {
		t.Fatalf("%d members of a gang that cannot be whole are bound", len(bound))
	}
	c.deletePods(t, ns, "others")
	class := ""
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: ns},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/data"}},
			ClaimRef:               &corev1.ObjectReference{Namespace: ns, Name: "later"},
		},
	}
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "later"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      volume.Spec.AccessModes,
			StorageClassName: &class,
			Resources:        corev1.VolumeResourceRequirements{Requests: volume.Spec.Capacity},
			VolumeName:       ns,
		},
	}
	if err := errors.Join(c.Create(t.Context(), volume), c.Create(t.Context(), claim)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Delete(context.Background(), volume) })
	c.awaitBound(t, ns, "worst", 4)
}

func (c *cluster) deletePods(t *testing.T, namespace, gang string) {
	t.Helper()
	if err := c.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(namespace), client.GracePeriodSeconds(0),
		client.MatchingLabels{gpuv1alpha1.GangLabel: gang}); err != nil {
		t.Fatal(err)
	}
}

// A member that is made again joins the others in their leaf, though that is not where most room is.
func memberIsReplaced(t *testing.T, c *cluster) {
	ns := c.namespace(t)
	selector, _ := c.nodes(t, 4)
	pods := gang(ns, "team", 2, 8, selector)
	for _, p := range pods {
		p.Annotations[gpuv1alpha1.RequiredLevelAnnotation] = "leaf"
	}
	again := pods[1].DeepCopy()
	c.make(t, pods...)
	c.awaitBound(t, ns, "team", 2)
	if err := c.Delete(t.Context(), pods[1], client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error { return client.IgnoreAlreadyExists(c.Create(t.Context(), again)) })
	c.awaitBound(t, ns, "team", 2)
	if err := c.oneLeaf(t, c.boundOf(t, ns, "team")); err != nil {
		t.Error(err)
	}
}

// A gang of higher priority takes the place of whole gangs of lower priority, but for those that
// a disruption budget protects.
func priorityEvictsGangs(t *testing.T, c *cluster) {
	ns := c.namespace(t)
	selector, _ := c.nodes(t, 4)
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: ns}, Value: 1000}
	if err := c.Create(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Delete(context.Background(), class) })
	none := intstr.FromInt32(0)
	pdb := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "safe"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: &none,
			Selector:       &metav1.LabelSelector{MatchLabels: map[string]string{gpuv1alpha1.GangLabel: "safe"}},
		},
	}
	if err := c.Create(t.Context(), pdb); err != nil {
		t.Fatal(err)
	}
	c.make(t, gang(ns, "safe", 2, 8, selector)...)
	c.awaitBound(t, ns, "safe", 2)
	low := gang(ns, "low", 2, 8, selector)
	c.make(t, low...)
	c.awaitBound(t, ns, "low", 2)
	zero := int64(0)
	high := func(name string, size int) {
		pods := gang(ns, name, size, 8, selector)
		for _, p := range pods {
			p.Spec.PriorityClassName, p.Spec.TerminationGracePeriodSeconds = ns, &zero
		}
		c.make(t, pods...)
	}
	high("high", 2)
	c.awaitBound(t, ns, "high", 2)
	if n := len(c.boundOf(t, ns, "safe")); n != 2 {
		t.Errorf("%d of 2 pods under a disruption budget are left", n)
	}
	if n := len(c.boundOf(t, ns, "low")); n != 0 {
		t.Errorf("%d pods of a gang that lost its place are left", n)
	}
	high("more", 2)
	c.awaitTold(t, ns, "more-0", "gang more")
	if n := len(c.boundOf(t, ns, "safe")); n != 2 {
		t.Errorf("%d of 2 pods under a disruption budget are left", n)
	}
}

func podGroupsSayWhatTheyLack(t *testing.T, c *cluster) {
	ns := c.namespace(t)
	selector, _ := c.nodes(t, 1)
	const groups = `
apiVersion: scheduling.k8s.io/v1alpha2
kind: PodGroup
metadata: {name: empty}
spec: {schedulingPolicy: {gang: {minCount: 2}}}
---
apiVersion: scheduling.k8s.io/v1alpha2
kind: PodGroup
metadata: {name: half}
spec: {schedulingPolicy: {gang: {minCount: 2}}}
---
apiVersion: scheduling.k8s.io/v1alpha2
kind: PodGroup
metadata: {name: wide}
spec: {schedulingPolicy: {gang: {minCount: 2}}}
`
	if said := c.kubectl(strings.NewReader(groups), "-n", ns, "apply", "-f", "-"); strings.Contains(said, "rror") {
		t.Fatal(said)
	}
	member := func(name, group string) *corev1.Pod {
		p := gpuPod(ns, name, 8, selector)
		p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &group}
		return p
	}
	c.make(t, member("orphan", "nowhere"), member("half", "half"), member("wide-0", "wide"), member("wide-1", "wide"))
	c.make(t, gpuPod(ns, "beside", 8, selector))
	eventually(t, func() error { return c.allBound(t, ns, 1) })
	c.awaitTold(t, ns, "orphan", "there is no PodGroup nowhere")
	c.awaitTold(t, ns, "half", "waiting for 1 of 2 pods of PodGroup half")
	c.awaitTold(t, ns, "wide-0", "PodGroup wide")
	eventually(t, func() error {
		said := c.kubectl(nil, "-n", ns, "get", "podgroup", "empty", "-o", "jsonpath={.status.conditions}")
		if !strings.Contains(said, "no pod belongs to it") {
			return fmt.Errorf("the PodGroup without pods is told %s", said)
		}
		return nil
	})
	if n := c.refusals(t, ns, "wide-"); n > 4 {
		t.Errorf("a PodGroup of two pods was refused %d times without any news", n)
	}
}
