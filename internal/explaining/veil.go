package explaining

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/explain"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

// curtain gives other names to what is in namespaces that the asker may not see into, the same
// name always the same within one answer. A nil one hides nothing.
type curtain struct {
	own   string
	sees  func(namespace string) bool
	known map[string]bool
	names map[string]string
}

// drawn returns the ask with its curtain.
func (a Ask) drawn() Ask {
	if a.curtain == nil && a.Sees != nil {
		a.curtain = &curtain{own: a.Name.Namespace, sees: a.Sees, known: map[string]bool{}, names: map[string]string{}}
	}
	return a
}

// name returns "namespace/name" or "namespace/Kind/name" as the asker may see it. The namespace
// stays: it is whom to ask.
func (c *curtain) name(name string) string {
	namespace, _, _ := strings.Cut(name, "/")
	if c == nil || namespace == "" || namespace == c.own || isHidden(name) {
		return name
	}
	seen, known := c.known[namespace]
	if !known {
		seen = c.sees(namespace)
		c.known[namespace] = seen
	}
	if seen {
		return name
	}
	alias := c.names[name]
	if alias == "" {
		alias = fmt.Sprintf("%s/%s%d", namespace, hiddenName, len(c.names)+1)
		c.names[name] = alias
	}
	return alias
}

// all returns the names as the asker may see them, and whether any is hidden.
func (c *curtain) all(names []string) (shown []string, hidden bool) {
	for _, name := range names {
		alias := c.name(name)
		shown, hidden = append(shown, alias), hidden || alias != name
	}
	return shown, hidden
}

// named matches what may be "namespace/name" in a text. A namespace has no dot, as the domain of a
// resource has, and here a letter first, so that "16/leaf" is none.
func named() *regexp.Regexp {
	return regexp.MustCompile(`(^|[\s("])([a-z][-a-z0-9]*/[A-Za-z0-9][-A-Za-z0-9./]*[A-Za-z0-9]|[a-z][-a-z0-9]*/[A-Za-z0-9])`)
}

// text returns a text of the decider's, written for those who see everything, with the names in it
// as the asker may see them.
func (c *curtain) text(text string) string {
	if c == nil || !strings.Contains(text, "/") {
		return text
	}
	return named().ReplaceAllStringFunc(text, func(found string) string {
		at := strings.IndexFunc(found, func(r rune) bool { return r >= 'a' && r <= 'z' })
		return found[:at] + c.name(found[at:])
	})
}

// veil gives other names to what runs in namespaces that the asker may not see into, before
// anything is asked: whatever sentence is made of the answer, it cannot tell what is hidden.
func veil(q *explain.Question, c *curtain) {
	hidden := map[*cluster.Workload]*cluster.Workload{}
	names := map[string]string{}
	var changed []*cluster.Node
	for _, n := range q.Snapshot.Nodes() {
		var next *cluster.Node
		for i, p := range n.Pods {
			if p.Workload == nil {
				continue
			}
			alias := c.name(p.Workload.Name)
			if alias == p.Workload.Name {
				continue
			}
			names[p.Workload.Name] = alias
			w := hidden[p.Workload]
			if w == nil {
				own := *p.Workload
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

// isHidden tells whether the name is one of the curtain's.
func isHidden(name string) bool { return strings.Contains(name, "/"+hiddenName) }
