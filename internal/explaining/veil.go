package explaining

import (
	"fmt"
	"strings"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/explain"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

// veil gives other names to what runs in namespaces that the asker may not see into, before
// anything is asked: whatever sentence is made of the answer, it cannot tell what is hidden. The
// namespace stays: it is whom to ask.
func veil(q *explain.Question, ask Ask) {
	sees := map[string]bool{ask.Name.Namespace: true}
	hidden := map[*cluster.Workload]*cluster.Workload{}
	names := map[string]string{}
	var changed []*cluster.Node
	for _, n := range q.Snapshot.Nodes() {
		var next *cluster.Node
		for i, p := range n.Pods {
			if p.Workload == nil {
				continue
			}
			namespace, _, _ := strings.Cut(p.Workload.Name, "/")
			seen, known := sees[namespace]
			if !known {
				seen = ask.Sees(namespace)
				sees[namespace] = seen
			}
			if seen {
				continue
			}
			w := hidden[p.Workload]
			if w == nil {
				own := *p.Workload
				alias := names[own.Name]
				if alias == "" {
					alias = fmt.Sprintf("%s/%s%d", namespace, hiddenName, len(names)+1)
					names[own.Name] = alias
				}
				own.Name = alias
				w = &own
				hidden[p.Workload] = w
			}
			if next == nil {
				own := *n
				own.Pods = append([]*cluster.Pod(nil), n.Pods...)
				next = &own
			}
			pod := *p
			pod.Workload, pod.Name = w, w.Name
			next.Pods[i] = &pod
		}
		if next != nil {
			changed = append(changed, next)
		}
	}
	if len(names) == 0 {
		return
	}
	running := map[string]placement.Run{}
	for name, run := range q.Running {
		if alias := names[name]; alias != "" {
			name = alias
		}
		running[name] = run
	}
	foreigners := map[string]bool{}
	for name, alias := range names {
		foreigners[alias] = foreign(name)
	}
	q.Running = running
	q.Foreign = func(name string) bool {
		if is, aliased := foreigners[name]; aliased {
			return is
		}
		return foreign(name)
	}
	q.Snapshot = q.Snapshot.Next(q.Snapshot.Generation, q.Snapshot.Resources, changed)
}

// hiddenName stands for a name that the asker may not know. No object can be called that, so that
// no command is printed of it.
const hiddenName = "(hidden)-"
