package explain

import "github.com/reyisjones/gpu-orchestrator/core/cluster"

// liberty is the cluster as it is, but for what may be done to some of its workloads: the
// question "and if they were asked".
type liberty struct {
	s *cluster.Snapshot
	// from are the pods that the copies in s stand for, count how many workloads they are of.
	from  map[*cluster.Pod]*cluster.Pod
	count int
	base  *cluster.Snapshot
}

// liberal returns the snapshot with the workloads that permit names changed by grant.
func (e *explainer) liberal(permit func(*cluster.Workload) bool, grant func(*cluster.Workload)) *liberty {
	l := &liberty{from: map[*cluster.Pod]*cluster.Pod{}, base: e.Snapshot}
	copies := map[*cluster.Workload]*cluster.Workload{}
	var changed []*cluster.Node
	for _, n := range e.Snapshot.Nodes() {
		var next *cluster.Node
		for i, p := range n.Pods {
			if p.Workload == nil || p.Workload.Name == e.Request.Name || !permit(p.Workload) {
				continue
			}
			w := copies[p.Workload]
			if w == nil {
				own := *p.Workload
				grant(&own)
				w = &own
				copies[p.Workload] = w
			}
			if next == nil {
				own := *n
				own.Pods = append([]*cluster.Pod(nil), n.Pods...)
				next = &own
			}
			pod := *p
			pod.Workload = w
			next.Pods[i] = &pod
			l.from[&pod] = p
		}
		if next != nil {
			changed = append(changed, next)
		}
	}
	l.count = len(copies)
	l.s = e.Snapshot.Next(e.Snapshot.Generation+1, e.Snapshot.Resources, changed)
	return l
}

// only returns the snapshot in which nobody but the copies may be evicted.
func (l *liberty) only() *cluster.Snapshot {
	fixed := map[*cluster.Workload]*cluster.Workload{}
	var changed []*cluster.Node
	for _, n := range l.s.Nodes() {
		var next *cluster.Node
		for i, p := range n.Pods {
			if _, free := l.from[p]; free || p.Workload == nil || !p.Workload.Preemptible {
				continue
			}
			w := fixed[p.Workload]
			if w == nil {
				own := *p.Workload
				own.Preemptible = false
				w = &own
				fixed[p.Workload] = w
			}
			if next == nil {
				own := *n
				own.Pods = append([]*cluster.Pod(nil), n.Pods...)
				next = &own
			}
			pod := *p
			pod.Workload = w
			next.Pods[i] = &pod
		}
		if next != nil {
			changed = append(changed, next)
		}
	}
	return l.s.Next(l.s.Generation+1, l.s.Resources, changed)
}

// original returns the pod that a copy stands for; any other pod is its own.
func (l *liberty) original(p *cluster.Pod) *cluster.Pod {
	if from, ok := l.from[p]; ok {
		return from
	}
	return p
}
