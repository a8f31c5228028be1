package cluster

import (
	"slices"
	"strconv"
)

// Effect says what a taint does to pods that do not tolerate it.
type Effect string

// The effects that keep a pod from a node. A preference not to schedule never does, so it is
// not carried over.
const (
	NoSchedule Effect = "NoSchedule"
	NoExecute  Effect = "NoExecute"
)

// Taint keeps pods off a node unless they tolerate it.
type Taint struct {
	Key, Value string
	Effect     Effect
}

// Toleration lets a pod on nodes with matching taints. An empty Key with Exists tolerates
// every key; an empty Effect every effect.
type Toleration struct {
	Key, Value string
	Effect     Effect
	Exists     bool
}

// Tolerates tells whether t lets a pod on a node with the taint.
func (t Toleration) Tolerates(taint Taint) bool {
	if t.Effect != "" && t.Effect != taint.Effect {
		return false
	}
	if t.Key == "" {
		return t.Exists
	}
	return t.Key == taint.Key && (t.Exists || t.Value == taint.Value)
}

// Untolerated returns the first taint of the node that none of the tolerations covers.
func (n *Machine) Untolerated(tolerations []Toleration) (Taint, bool) {
next:
	for _, taint := range n.Taints {
		for _, t := range tolerations {
			if t.Tolerates(taint) {
				continue next
			}
		}
		return taint, true
	}
	return Taint{}, false
}

// Operator compares a node's label with the values of a Requirement.
type Operator string

// The operators of a node selector, with the meaning Kubernetes gives them.
const (
	In           Operator = "In"
	NotIn        Operator = "NotIn"
	Exists       Operator = "Exists"
	DoesNotExist Operator = "DoesNotExist"
	Gt           Operator = "Gt"
	Lt           Operator = "Lt"
)

// Requirement is one test of a node's labels, or of its name.
type Requirement struct {
	Key      string
	Operator Operator
	Values   []string
	// Field says that Key names a field of the node, of which there is one: metadata.name.
	Field bool
}

// Term holds if all its requirements hold. A term without any never holds.
type Term []Requirement

// Selector narrows the nodes: every label of Labels must be there, and, if there are Terms, at
// least one of them must hold.
type Selector struct {
	Labels map[string]string
	Terms  []Term
}

// Matches tells whether the selector lets a pod on the node.
func (s Selector) Matches(n *Machine) bool {
	for k, v := range s.Labels {
		if have, ok := n.Labels[k]; !ok || have != v {
			return false
		}
	}
	if len(s.Terms) == 0 {
		return true
	}
	for _, t := range s.Terms {
		if t.Matches(n) {
			return true
		}
	}
	return false
}

// Matches tells whether all requirements hold for the node.
func (t Term) Matches(n *Machine) bool {
	for _, r := range t {
		if !r.matches(n) {
			return false
		}
	}
	return len(t) > 0
}

func (r Requirement) matches(n *Machine) bool {
	have, ok := n.Labels[r.Key]
	if r.Field {
		have, ok = n.Name, r.Key == "metadata.name"
	}
	switch r.Operator {
	case In:
		return ok && slices.Contains(r.Values, have)
	case NotIn:
		return !ok || !slices.Contains(r.Values, have)
	case Exists:
		return ok
	case DoesNotExist:
		return !ok
	case Gt, Lt:
		return ok && len(r.Values) == 1 && compare(r.Operator, have, r.Values[0])
	}
	return false
}

// compare reads both sides as whole numbers, as Kubernetes does; anything else never matches.
func compare(op Operator, have, want string) bool {
	h, err := strconv.ParseInt(have, 10, 64)
	if err != nil {
		return false
	}
	w, err := strconv.ParseInt(want, 10, 64)
	if err != nil {
		return false
	}
	if op == Gt {
		return h > w
	}
	return h < w
}
