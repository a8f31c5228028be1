package kube

import (
	"reflect"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/internal/manager"
	"github.com/reyisjones/gpu-orchestrator/internal/sim/importing"
	"github.com/reyisjones/gpu-orchestrator/internal/sim/trace"
)

// Objects are made from minute 0 on; it is now hour 10.
var (
	begin = time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	now   = begin.Add(10 * time.Hour)
)

func at(minute int) metav1.Time {
	return metav1.NewTime(begin.Add(time.Duration(minute) * time.Minute))
}

func amounts(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

func testNode(name string, labels map[string]string, offers ...string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Status: corev1.NodeStatus{
			Allocatable: amounts(offers...),
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}

func h100(name string) *corev1.Node {
	return testNode(name, map[string]string{"nvidia.com/gpu.product": "H100", "pool": "new"}, "cpu", "96", "memory", "1Ti", "nvidia.com/gpu", "8")
}

func a100(name string) *corev1.Node {
	return testNode(name, map[string]string{"nvidia.com/gpu.product": "A100", "pool": "old"}, "cpu", "96", "memory", "1Ti", "nvidia.com/gpu", "8")
}

func asking(pairs ...string) corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Limits: amounts(pairs...)}}}}
}

// testPod is made at minute 0 and may have run since a minute, and ended in another; -1 is not.
func testPod(name, owner string, spec corev1.PodSpec, start, end int) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, UID: types.UID("pod " + name), CreationTimestamp: at(0)}, Spec: spec}
	if kind, uid, ok := strings.Cut(owner, " "); ok {
		version := map[string]string{"Job": "batch/v1", "DaemonSet": "apps/v1", "ReplicaSet": "apps/v1"}[kind]
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: uid, UID: types.UID(uid), Controller: ptr.To(true)}}
	}
	p.Status.Phase = corev1.PodPending
	if start >= 0 {
		p.Status.Phase, p.Status.StartTime = corev1.PodRunning, ptr.To(at(start))
	}
	if end >= 0 {
		p.Status.Phase = corev1.PodSucceeded
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: at(end)}}}}
	}
	return p
}

func failed(p *corev1.Pod) *corev1.Pod {
	p.Status.Phase = corev1.PodFailed
	return p
}

// testJob is made at a minute and may have completed in another; -1 is not.
func testJob(name, owner string, count int32, spec corev1.PodSpec, created, end int) *batchv1.Job {
	j := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, UID: types.UID(name), CreationTimestamp: at(created)},
		Spec:       batchv1.JobSpec{Parallelism: &count, Template: corev1.PodTemplateSpec{Spec: spec}},
		Status:     batchv1.JobStatus{StartTime: ptr.To(at(created))},
	}
	if kind, uid, ok := strings.Cut(owner, " "); ok {
		j.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: uid, UID: types.UID(uid), Controller: ptr.To(true)}}
	}
	if end >= 0 {
		j.Status.CompletionTime = ptr.To(at(end))
	}
	return j
}

func translate(o *Objects) *importing.Found {
	return Translate(o, Options{Now: now, Since: 168 * time.Hour, SpineLabels: SpineLabels(), LeafLabels: LeafLabels()})
}

// TestLabels holds that the cluster's switches are looked for where the product looks for them.
func TestLabels(t *testing.T) {
	for _, l := range manager.DefaultConfig().TopologyLevels {
		switch {
		case l.Name == "spine" && !reflect.DeepEqual(l.Labels, SpineLabels()):
			t.Errorf("spines: %v, and the product looks for %v", SpineLabels(), l.Labels)
		case l.Name == "leaf" && !reflect.DeepEqual(l.Labels, LeafLabels()):
			t.Errorf("leaves: %v, and the product looks for %v", LeafLabels(), l.Labels)
		}
	}
}

func TestNodes(t *testing.T) {
	gfd := func(product string, more ...string) map[string]string {
		labels := map[string]string{"nvidia.com/gpu.product": product, "nvidia.com/gpu.memory": "81920"}
		for i := 0; i < len(more); i += 2 {
			labels[more[i]] = more[i+1]
		}
		return labels
	}
	cordoned := testNode("n", nil, "cpu", "1")
	cordoned.Spec.Unschedulable = true
	bare := testNode("n", gfd("H100", "nvidia.com/gpu.count", "4"))
	bare.Status.Capacity = amounts("cpu", "8", "memory", "1Gi")
	for name, c := range map[string]struct {
		node    *corev1.Node
		want    trace.Node
		changed string
	}{
		"GPUs, and where it is": {
			testNode("n", gfd("NVIDIA-H100-80GB-HBM3", "network.topology.nvidia.com/spine", "s1", "fabric.topograph.run/tier-0", "l1"), "cpu", "95500m", "memory", "2147483649", "nvidia.com/gpu", "8"),
			trace.Node{Name: "n", CPUMilli: 95500, MemoryMiB: 2048, GPUs: 8, Model: "NVIDIA-H100-80GB-HBM3", Spine: "s1", Leaf: "l1"}, "",
		},
		"none":                  {testNode("n", nil, "cpu", "4"), trace.Node{Name: "n", CPUMilli: 4000}, ""},
		"AMD":                   {testNode("n", map[string]string{"amd.com/gpu.product-name": "MI300X"}, "amd.com/gpu", "8"), trace.Node{Name: "n", GPUs: 8, Model: "MI300X"}, ""},
		"Intel":                 {testNode("n", nil, "gpu.intel.com/i915", "4"), trace.Node{Name: "n", GPUs: 4}, "nodes with GPUs and no label that says which: without a model"},
		"capacity and a label":  {bare, trace.Node{Name: "n", CPUMilli: 8000, MemoryMiB: 1024, GPUs: 4, Model: "H100"}, ""},
		"out of service":        {cordoned, trace.Node{Name: "n", CPUMilli: 1000}, "nodes that are cordoned or not ready now: written as if they served"},
		"shared, renamed":       {testNode("n", gfd("H100", "nvidia.com/gpu.replicas", "4"), "nvidia.com/gpu.shared", "32"), trace.Node{Name: "n", GPUs: 8, Model: "H100"}, "nodes with GPUs that are cut or shared: written with the whole GPUs"},
		"shared":                {testNode("n", gfd("H100-SHARED", "nvidia.com/gpu.replicas", "10"), "nvidia.com/gpu", "20"), trace.Node{Name: "n", GPUs: 2, Model: "H100"}, "nodes with GPUs that are cut or shared: written with the whole GPUs"},
		"all cut in sevenths":   {testNode("n", gfd("NVIDIA-A100-SXM4-80GB"), "nvidia.com/mig-1g.10gb", "56"), trace.Node{Name: "n", GPUs: 8, Model: "NVIDIA-A100-SXM4-80GB"}, "nodes with GPUs that are cut or shared: written with the whole GPUs"},
		"cut in halves":         {testNode("n", gfd("NVIDIA-A100-SXM4-80GB"), "nvidia.com/mig-3g.40gb", "16"), trace.Node{Name: "n", GPUs: 8, Model: "NVIDIA-A100-SXM4-80GB"}, "nodes with GPUs that are cut or shared: written with the whole GPUs"},
		"cut and whole":         {testNode("n", gfd("NVIDIA-A100-SXM4-80GB"), "nvidia.com/gpu", "4", "nvidia.com/mig-1g.10gb", "8", "nvidia.com/mig-2g.20gb", "4", "nvidia.com/mig-3g.40gb", "4"), trace.Node{Name: "n", GPUs: 8, Model: "NVIDIA-A100-SXM4-80GB"}, "nodes with GPUs that are cut or shared: written with the whole GPUs"},
		"cut, one kind":         {testNode("n", gfd("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"), "nvidia.com/gpu", "14"), trace.Node{Name: "n", GPUs: 2, Model: "NVIDIA-A100-SXM4-40GB"}, "nodes with GPUs that are cut or shared: written with the whole GPUs"},
		"cut, of unknown model": {testNode("n", gfd("X900"), "nvidia.com/mig-3g.1gb", "4"), trace.Node{Name: "n", GPUs: 2, Model: "X900"}, "nodes with GPUs that are cut or shared: written with the whole GPUs"},
		"more than there are":   {testNode("n", gfd("H100"), "nvidia.com/gpu", "5e6"), trace.Node{Name: "n", GPUs: 64, Model: "H100"}, "nodes with more than 64 GPUs, which is the most that is written"},
		"amounts past reckoning": {testNode("n", gfd("H100"), "nvidia.com/gpu", "5e99999999", "memory", "-1"),
			trace.Node{Name: "n"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			found := translate(&Objects{Nodes: []*corev1.Node{c.node}})
			if len(found.Nodes) != 1 || found.Nodes[0] != c.want {
				t.Errorf("got %+v\nwant %+v", found.Nodes, c.want)
			}
			changed := ""
			for _, n := range found.Changed {
				changed += n.Text
			}
			if changed != c.changed {
				t.Errorf("says %q, want %q", changed, c.changed)
			}
		})
	}
}

func TestJobs(t *testing.T) {
	eight := asking("nvidia.com/gpu", "8")
	selected := func(spec corev1.PodSpec, key, value string) corev1.PodSpec {
		spec.NodeSelector = map[string]string{key: value}
		return spec
	}
	urgent := func(p *corev1.Pod) *corev1.Pod {
		p.Spec.Priority = ptr.To[int32](1000)
		return p
	}
	queued := func(j *batchv1.Job) *batchv1.Job {
		j.Labels = map[string]string{queueLabel: "training"}
		return j
	}
	grouped := func(p *corev1.Pod) *corev1.Pod {
		p.Labels = map[string]string{"kueue.x-k8s.io/pod-group-name": "band"}
		return p
	}
	workload := func(spec gpuv1alpha1.GPUWorkloadSpec, status gpuv1alpha1.GPUWorkloadStatus) *gpuv1alpha1.GPUWorkload {
		return &gpuv1alpha1.GPUWorkload{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "llama", UID: "llama", CreationTimestamp: at(5)}, Spec: spec, Status: status}
	}
	planned := eight
	planned.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"h1"}}}}},
	}}}
	claiming := asking("cpu", "1")
	claiming.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}}
	old := testJob("j", "", 1, eight, -11*24*60, -1)
	failing := testJob("j", "", 2, eight, 0, -1)
	failing.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, LastTransitionTime: at(50)}}
	evicted := failed(testPod("p", "", eight, 3, -1))
	evicted.Status.Conditions = []corev1.PodCondition{{LastTransitionTime: at(40)}, {LastTransitionTime: at(43)}}
	many := testJob("j", "", 8, eight, 0, 60)
	many.Spec.Completions = ptr.To[int32](2)

	want := func(j trace.Job) []trace.Job {
		if j.ID == "" {
			j.ID = "ml/j"
		}
		if j.Queue == "" {
			j.Queue = "ml"
		}
		return []trace.Job{j}
	}
	for name, c := range map[string]struct {
		objects       Objects
		want          []trace.Job
		left, changed string
	}{
		"it waited, and ran from the last start to its end": {
			Objects{Jobs: []*batchv1.Job{testJob("j", "", 2, eight, 0, 100)}, Pods: []*corev1.Pod{testPod("a", "Job j", eight, 20, 99), testPod("b", "Job j", eight, 30, 100)}},
			want(trace.Job{Duration: 70 * time.Minute, GPUs: 16, Pods: 2}), "", "",
		},
		"pods that were replaced do not start it again": {
			Objects{Jobs: []*batchv1.Job{testJob("j", "", 2, eight, 0, 100)}, Pods: []*corev1.Pod{
				testPod("a", "Job j", eight, 20, 99), failed(testPod("b", "Job j", eight, 30, -1)), testPod("c", "Job j", eight, 80, 100)}},
			want(trace.Job{Duration: 70 * time.Minute, GPUs: 16, Pods: 2}), "", "",
		},
		"it still runs": {
			Objects{Jobs: []*batchv1.Job{testJob("j", "", 1, eight, 0, -1)}, Pods: []*corev1.Pod{testPod("a", "Job j", eight, 0, -1)}},
			want(trace.Job{Duration: 10 * time.Hour, GPUs: 8, Pods: 1}), "", running,
		},
		"it still waits": {
			Objects{Jobs: []*batchv1.Job{testJob("j", "", 1, eight, 0, -1)}, Pods: []*corev1.Pod{testPod("a", "Job j", eight, -1, -1)}}, nil, waiting, "",
		},
		"its pods are gone": {
			Objects{Jobs: []*batchv1.Job{testJob("j", "", 1, eight, 10, 70)}}, want(trace.Job{Duration: time.Hour, GPUs: 8, Pods: 1}), "", podsGone,
		},
		"it failed": {
			Objects{Jobs: []*batchv1.Job{failing}, Pods: []*corev1.Pod{failed(testPod("a", "Job j", eight, 10, -1)), failed(testPod("b", "Job j", eight, 20, -1))}},
			want(trace.Job{Duration: 30 * time.Minute, GPUs: 16, Pods: 2}), "", "",
		},
		"no more pods at once than completions": {
			Objects{Jobs: []*batchv1.Job{many}, Pods: []*corev1.Pod{testPod("a", "Job j", eight, 0, 60)}}, want(trace.Job{Duration: time.Hour, GPUs: 16, Pods: 2}), "", "",
		},
		"it asks for a model by any label": {
			Objects{Jobs: []*batchv1.Job{testJob("j", "", 1, selected(eight, "pool", "old"), 0, 60)}}, want(trace.Job{Duration: time.Hour, GPUs: 8, Pods: 1, Model: "A100"}), "", podsGone,
		},
		"it asks for what is not there": {
			Objects{Jobs: []*batchv1.Job{testJob("j", "", 1, selected(eight, "nvidia.com/gpu.product", "B200"), 0, 60)}},
			want(trace.Job{Duration: time.Hour, GPUs: 8, Pods: 1}), "", podsGone + nowhere,
		},
		"priority and queue": {
			Objects{Jobs: []*batchv1.Job{queued(testJob("j", "", 1, eight, 0, 60))}, Pods: []*corev1.Pod{urgent(testPod("a", "Job j", eight, 0, 60))}},
			want(trace.Job{Duration: time.Hour, GPUs: 8, Pods: 1, Queue: "ml/training", Priority: 1000}), "", "",
		},
		"no GPU":   {Objects{Jobs: []*batchv1.Job{testJob("j", "", 1, asking("cpu", "1"), 0, 60)}}, nil, noGPU, ""},
		"claims":   {Objects{Jobs: []*batchv1.Job{testJob("j", "", 1, claiming, 0, 60)}}, nil, claims, ""},
		"too much": {Objects{Jobs: []*batchv1.Job{testJob("j", "", 1, asking("nvidia.com/gpu", "5e99999999"), 0, 60)}}, nil, absurd, ""},
		"too many": {Objects{Jobs: []*batchv1.Job{testJob("j", "", 2000000000, eight, 0, 60)}}, nil, absurd, ""},
		"long ago": {Objects{Jobs: []*batchv1.Job{old}}, nil, "jobs submitted more than 168h0m0s ago", ""},
		"long ago, it runs": {
			Objects{Jobs: []*batchv1.Job{old}, Pods: []*corev1.Pod{testPod("a", "Job j", eight, 0, -1)}}, nil, "jobs submitted more than 168h0m0s ago that still run", "",
		},
		"a JobSet is one job": {
			Objects{
				Jobs: []*batchv1.Job{testJob("w", "JobSet set", 2, eight, 1, 100), testJob("lead", "JobSet set", 1, asking("cpu", "1"), 0, -1), testJob("x", "JobSet set", 1, eight, 2, 90)},
				Pods: []*corev1.Pod{testPod("a", "Job w", eight, 20, 99), testPod("b", "Job w", eight, 30, 99), testPod("c", "Job x", eight, 40, 90)},
			},
			want(trace.Job{ID: "ml/set", Duration: time.Hour, GPUs: 24, Pods: 3}), "", "",
		},
		"a JobSet of which a part waits": {
			Objects{
				Jobs: []*batchv1.Job{testJob("w", "JobSet set", 1, eight, 1, -1), testJob("x", "JobSet set", 1, eight, 2, -1)},
				Pods: []*corev1.Pod{testPod("a", "Job w", eight, 20, -1)},
			}, nil, waiting, "",
		},
		"a CronJob's Jobs are not": {
			Objects{Jobs: []*batchv1.Job{testJob("a", "CronJob c", 1, eight, 0, 60), testJob("b", "CronJob c", 1, eight, 0, 60)}},
			[]trace.Job{{ID: "ml/a", Duration: time.Hour, GPUs: 8, Pods: 1, Queue: "ml"}, {ID: "ml/b", Duration: time.Hour, GPUs: 8, Pods: 1, Queue: "ml"}}, "", podsGone,
		},
		"pods of one owner of any kind": {
			Objects{Pods: []*corev1.Pod{testPod("a", "PyTorchJob bert", eight, 10, 50), testPod("b", "PyTorchJob bert", asking("nvidia.com/gpu", "4"), 20, 60), failed(testPod("c", "PyTorchJob bert", eight, 5, -1)), testPod("d", "PyTorchJob bert", asking("cpu", "1"), 70, 80)}},
			want(trace.Job{ID: "ml/bert", Duration: 40 * time.Minute, GPUs: 12}), "", uneven,
		},
		"replicas of a service are not one job": {
			Objects{Pods: []*corev1.Pod{testPod("a", "ReplicaSet web", eight, 0, -1), testPod("b", "ReplicaSet web", eight, 60, -1)}},
			[]trace.Job{{ID: "ml/a", Duration: 10 * time.Hour, GPUs: 8, Pods: 1, Queue: "ml"}, {ID: "ml/b", Duration: 9 * time.Hour, GPUs: 8, Pods: 1, Queue: "ml"}}, "", running,
		},
		"a group of pods without owner": {
			Objects{Pods: []*corev1.Pod{grouped(testPod("a", "", eight, 0, 60)), grouped(testPod("b", "", eight, 10, 60))}},
			want(trace.Job{ID: "ml/band", Duration: 50 * time.Minute, GPUs: 16, Pods: 2}), "", "",
		},
		"a lone pod that was evicted": {Objects{Pods: []*corev1.Pod{evicted}}, want(trace.Job{ID: "ml/p", Duration: 40 * time.Minute, GPUs: 8, Pods: 1}), "", ""},
		"parts of GPUs are rounded up": {
			Objects{Jobs: []*batchv1.Job{testJob("j", "", 3, asking("nvidia.com/mig-3g.40gb", "3"), 0, 60)}}, want(trace.Job{Duration: time.Hour, GPUs: 6, Pods: 3}), "", partial + podsGone,
		},
		"a GPUWorkload and the last of its attempts": {
			Objects{
				Workloads: []*gpuv1alpha1.GPUWorkload{workload(gpuv1alpha1.GPUWorkloadSpec{Priority: gpuv1alpha1.PriorityHigh, GPU: &gpuv1alpha1.GPURequirements{Product: "H100"}}, gpuv1alpha1.GPUWorkloadStatus{})},
				Jobs:      []*batchv1.Job{testJob("llama-0", "GPUWorkload llama", 4, eight, 6, 20), testJob("llama-1", "GPUWorkload llama", 2, eight, 30, 100)},
				Pods:      []*corev1.Pod{failed(testPod("a", "Job llama-0", planned, 7, -1)), testPod("b", "Job llama-1", planned, 40, 100), testPod("c", "Job llama-1", planned, 41, 100)},
			},
			want(trace.Job{ID: "ml/llama", Duration: 59 * time.Minute, GPUs: 16, Pods: 2, Model: "H100", Priority: 1}), "", "",
		},
		"a GPUWorkload whose Job is gone": {
			Objects{Workloads: []*gpuv1alpha1.GPUWorkload{workload(gpuv1alpha1.GPUWorkloadSpec{GPUCount: 8, Parallelism: 2}, gpuv1alpha1.GPUWorkloadStatus{StartTime: ptr.To(at(10)), CompletionTime: ptr.To(at(20))})}},
			want(trace.Job{ID: "ml/llama", Duration: 10 * time.Minute, GPUs: 16, Pods: 2}), "", "",
		},
		"a GPUWorkload that waits": {Objects{Workloads: []*gpuv1alpha1.GPUWorkload{workload(gpuv1alpha1.GPUWorkloadSpec{GPUCount: 8}, gpuv1alpha1.GPUWorkloadStatus{})}}, nil, waiting, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.objects.Nodes = []*corev1.Node{h100("h1"), a100("a1")}
			found := translate(&c.objects)
			if len(found.Jobs) != len(c.want) || len(c.want) > 0 && !reflect.DeepEqual(found.Jobs, c.want) {
				t.Errorf("got  %+v\nwant %+v", found.Jobs, c.want)
			}
			left, changed := "", ""
			for _, n := range found.Left {
				if n.Text != hugePods && n.Text != donePods {
					left += n.Text
				}
			}
			for _, n := range found.Changed {
				changed += n.Text
			}
			if left != c.left || changed != c.changed {
				t.Errorf("left out %q, want %q; changed %q, want %q", left, c.left, changed, c.changed)
			}
		})
	}
}

func TestPods(t *testing.T) {
	old := testPod("old", "", asking("cpu", "1"), 0, 10)
	old.CreationTimestamp = at(-11 * 24 * 60)
	service := testPod("service", "", asking("cpu", "1500m", "memory", "1048577"), 0, -1)
	service.CreationTimestamp = old.CreationTimestamp
	choosy := testPod("choosy", "", asking("nvidia.com/gpu", "2"), -1, -1)
	choosy.Spec.NodeSelector = map[string]string{"pool": "new"}
	shared := testNode("s1", map[string]string{"nvidia.com/gpu.product": "T4", "nvidia.com/gpu.replicas": "4"}, "nvidia.com/gpu.shared", "4")
	replica := testPod("replica", "", asking("nvidia.com/gpu.shared", "1"), 0, 20)
	replica.Spec.NodeName = "s1"
	found := translate(&Objects{
		Nodes: []*corev1.Node{h100("h1"), a100("a1"), shared},
		Pods: []*corev1.Pod{
			testPod("z", "", asking("cpu", "1", "nvidia.com/gpu", "1"), 0, -1), choosy, old, service, replica,
			testPod("agent", "DaemonSet agent", asking("cpu", "1"), 0, -1),
			testPod("mig", "", asking("nvidia.com/mig-1g.10gb", "2"), 0, -1),
			testPod("big", "", asking("nvidia.com/gpu", "65"), 0, -1),
		},
	})
	want := []trace.Pod{
		{Name: "ml/service", CPUMilli: 1500, MemoryMiB: 2},
		{Name: "ml/choosy", GPUs: 2, Milli: 1000, Models: []string{"H100"}},
		{Name: "ml/mig", GPUs: 1, Milli: 284},
		{Name: "ml/replica", GPUs: 1, Milli: 250},
		{Name: "ml/z", CPUMilli: 1000, GPUs: 1, Milli: 1000},
	}
	if !reflect.DeepEqual(found.Pods, want) {
		t.Errorf("got  %+v\nwant %+v", found.Pods, want)
	}
	for _, text := range []string{donePods, nodePods, hugePods} {
		n := 0
		for _, left := range found.Left {
			if left.Text == text {
				n = left.Count
			}
		}
		if n != 1 {
			t.Errorf("%d %s", n, text)
		}
	}
}

// TestModels are those of the nodes that a pod can go to, where that says something.
func TestModels(t *testing.T) {
	on := func(field bool, key, value string) corev1.PodSpec {
		s := asking("nvidia.com/gpu", "1")
		one := []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}}
		term := corev1.NodeSelectorTerm{MatchExpressions: one}
		if field {
			term = corev1.NodeSelectorTerm{MatchFields: one}
		}
		s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution:  &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}},
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 1, Preference: corev1.NodeSelectorTerm{MatchExpressions: one}}},
		}}
		return s
	}
	liked := on(false, "pool", "new")
	liked.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = nil
	nameless := testNode("x1", map[string]string{"pool": "misc"}, "nvidia.com/gpu", "1")
	tall := testNode("h2", map[string]string{"nvidia.com/gpu.product": "H100", "pool": "misc"}, "nvidia.com/gpu", "8")
	for name, c := range map[string]struct {
		spec corev1.PodSpec
		want []string
	}{
		"required by affinity":          {on(false, "pool", "new"), []string{"H100"}},
		"only preferred":                {liked, nil},
		"the node that a plan gave it":  {on(true, "metadata.name", "h1"), nil},
		"one of its nodes has no model": {on(false, "pool", "misc"), nil},
		"no node at all":                {on(false, "pool", "none"), nil},
	} {
		found := translate(&Objects{Nodes: []*corev1.Node{h100("h1"), a100("a1"), nameless, tall}, Pods: []*corev1.Pod{testPod("p", "", c.spec, 0, -1)}})
		if len(found.Pods) != 1 || !reflect.DeepEqual(found.Pods[0].Models, c.want) {
			t.Errorf("%s: got %+v, want %v", name, found.Pods, c.want)
		}
	}
}
