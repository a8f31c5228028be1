package state

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

// held is something that holds room on a node: a bound pod, or the promise of a plan to a member
// whose pod is not bound yet.
type held struct {
	node string
	use  cluster.Vector
	// uid is the pod's, "" for promises.
	uid types.UID
	// name is the pod's, "" for pods that are counted and not listed: see listed.
	name string
	// priority is the pod's own, of pods that are not ours.
	priority int32
	// attempt is that of the workload's Job, of pods and promises that are ours.
	attempt int32
	// since is when the pod was bound, in seconds since 1970; 0 for a promise.
	since int64
	work  *work
	// slot is its place in work.members.
	slot int
	// made is what snapshots show of it. It is made anew when the workload changed.
	made *cluster.Pod
}

// workKey says what pods stand or fall together: those of one GPUWorkload, or, with uid "",
// those of one controller of somebody else's.
type workKey struct {
	uid  types.UID
	name string
	// spared are pods that a scheduler does not evict: see companyOf.
	spared bool
}

// work is a workload with all that it holds.
type work struct {
	key workKey
	// spec and needs are what snapshots point to: replaced, never written to.
	spec  *cluster.Workload
	needs *cluster.Needs
	// told says that spec is what the API server tells of a GPUWorkload, generation of which
	// edition of it; 0 is not known.
	told       bool
	generation int64
	// source is that edition, nil while nothing is told.
	source  *gpuv1alpha1.GPUWorkload
	members []*held
	// gpus is how many GPUs each pod holds; bound counts the members that are bound pods, and
	// since adds up when they were.
	gpus  float64
	bound int
	since int64
	// estimate is how long it says that it runs.
	estimate placement.Estimate
	// use is the amounts of the last member: those of most are equal, and share one Vector.
	use cluster.Vector
}

// heldBy returns what a bound pod holds, nil for one that is not bound. The pod's workload is
// found, but does not have it yet.
func (s *State) heldBy(pod *corev1.Pod, node string) *held {
	if node == "" {
		return nil
	}
	h := &held{node: node, use: podUse(pod, s.resources), uid: pod.UID}
	key, ours := workOf(pod)
	if s.podsAlone {
		key, ours = companyOf(pod, key), false
	}
	if !ours && !s.listed(h.use) {
		return h
	}
	h.name = pod.Namespace + "/" + pod.Name
	if ours {
		m, _ := memberOf(pod)
		h.attempt, h.since = m.attempt, boundAt(pod)
	}
	if !ours && pod.Spec.Priority != nil {
		h.priority = *pod.Spec.Priority
	}
	h.work = s.workFor(key)
	return h
}

// listed tells whether a pod of somebody else's is shown in snapshots, pod by pod. Those that
// hold no device are not: nothing there is to be gained for a GPU workload by looking at them,
// nobody evicts or moves them, and at ten daemons a node they are most of the pods of a cluster.
// They count in Node.Used like all others.
func (s *State) listed(use cluster.Vector) bool {
	for i, amount := range use {
		// Kubernetes' own resources have no domain in their name: ephemeral-storage, hugepages-2Mi.
		if amount > 0 && s.resources.Extended(i) && strings.Contains(s.resources.Name(i), "/") {
			return true
		}
	}
	return false
}

// workOf tells what the pod belongs to, and whether that is a GPUWorkload: its labels say so, and
// the Job that controls it is the one of that workload's attempt. Labels alone can be anybody's.
func workOf(pod *corev1.Pod) (workKey, bool) {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return workKey{name: pod.Namespace + "/Pod/" + pod.Name}, false
	}
	if m, ok := memberOf(pod); ok {
		w := gpuv1alpha1.GPUWorkload{ObjectMeta: metav1.ObjectMeta{Name: pod.Labels[gpuv1alpha1.WorkloadLabel], UID: m.workload}}
		if owner.Name == JobName(&w, m.attempt) {
			return workKey{uid: m.workload, name: pod.Namespace + "/" + w.Name}, true
		}
	}
	return workKey{name: pod.Namespace + "/" + printable(owner.Kind) + "/" + printable(owner.Name)}, false
}

// printable writes out what a terminal would not show as a letter. Whoever makes a pod writes its
// owner as they like, and its name is in what others read.
func printable(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }) {
		return strings.Trim(strconv.QuoteToASCII(name), `"`)
	}
	return name
}

func (s *State) workFor(key workKey) *work {
	w, ok := s.works[key]
	if !ok {
		// Until a GPUWorkload is told of, and of what is not ours for good, nothing is allowed.
		w = &work{key: key, spec: &cluster.Workload{Name: key.name, Level: -1, Preemptible: s.podsAlone && !key.spared}}
		s.works[key] = w
	}
	return w
}

// same tells whether the two hold the same, for the same.
func (h *held) same(other *held) bool {
	if h == nil || other == nil {
		return h == other
	}
	return h.name == other.name && h.work == other.work && h.priority == other.priority && h.sameRoom(other)
}

// sameRoom tells whether the other holds the same amounts of the same node.
func (h *held) sameRoom(other *held) bool {
	return other != nil && h.node == other.node && equalVectors(h.use, other.use)
}

// take counts what is held, and lists it.
func (s *State) take(h *held) {
	if h == nil {
		return
	}
	e := s.entry(h.node)
	e.used = e.used.Add(h.use)
	s.touch(h.node)
	if h.work == nil {
		return
	}
	i, _ := slices.BinarySearchFunc(e.held, h, byName)
	e.held = slices.Insert(e.held, i, h)
	w := h.work
	if equalVectors(w.use, h.use) && len(w.use) == len(h.use) {
		h.use = w.use
	}
	w.use = h.use
	h.slot = len(w.members)
	w.members = append(w.members, h)
	w.count(h, 1)
	s.works[w.key] = w // It may have been forgotten since h was made.
	if !w.ours() && (len(w.members) == 1 || h.priority > w.spec.Priority) {
		s.setPriority(w, h.priority)
	}
}

// give takes back what is held.
func (s *State) give(h *held) {
	if h == nil {
		return
	}
	e := s.entry(h.node)
	e.used = e.used.Sub(h.use)
	s.touch(h.node)
	defer s.tidy(h.node)
	if h.work == nil {
		return
	}
	if i := slices.Index(e.held, h); i >= 0 {
		e.held = slices.Delete(e.held, i, i+1)
	}
	w := h.work
	w.count(h, -1)
	last := len(w.members) - 1
	w.members[h.slot] = w.members[last]
	w.members[h.slot].slot = h.slot
	w.members[last] = nil
	w.members = w.members[:last]
	switch {
	case len(w.members) > 0:
		s.demote(w, h.priority)
	case !w.told:
		delete(s.works, w.key)
	}
}

// count counts a member that is bound in (1) or out (-1).
func (w *work) count(h *held, sign int) {
	if h.since > 0 {
		w.bound += sign
		w.since += int64(sign) * h.since
	}
}

func byName(a, b *held) int { return cmp.Compare(a.name, b.name) }

func (w *work) ours() bool { return w.key.uid != "" }

// demote finds the priority of a workload that is not ours after a pod of the given one left: the
// highest of its pods. Almost always the next pod has the same.
func (s *State) demote(w *work, left int32) {
	if w.ours() || left < w.spec.Priority {
		return
	}
	highest := w.members[0].priority
	for _, m := range w.members {
		if highest = max(highest, m.priority); highest == left {
			return
		}
	}
	s.setPriority(w, highest)
}

func (s *State) setPriority(w *work, priority int32) {
	if w.spec.Priority == priority {
		return
	}
	next := *w.spec
	next.Priority = priority
	s.respecify(w, &next, nil)
}

// respecify replaces what is known of a workload. Its pods are shown anew with the next snapshot:
// all pods of a workload point to one Workload.
func (s *State) respecify(w *work, spec *cluster.Workload, needs *cluster.Needs) {
	w.spec, w.needs = spec, needs
	for _, m := range w.members {
		s.touch(m.node)
	}
}

// pods returns what the node's snapshot shows of what is held there.
func (e *entry) pods() []*cluster.Pod {
	if len(e.held) == 0 {
		return nil
	}
	list := make([]*cluster.Pod, len(e.held))
	for i, h := range e.held {
		gpus := e.heldGPUs(h)
		if h.made == nil || h.made.Workload != h.work.spec || h.made.Needs != h.work.needs || h.made.GPUs != gpus {
			h.made = &cluster.Pod{Name: h.name, Workload: h.work.spec, Use: h.use, Needs: h.work.needs, GPUs: gpus}
		}
		list[i] = h.made
	}
	return list
}
