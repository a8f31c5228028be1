package extender

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	kjson "sigs.k8s.io/json"
)

// args are ExtenderArgs as they come: nodes stay as they are written, only their names are read, so
// that what is sent back is what came, newer fields and all.
type args struct {
	pod   *corev1.Pod
	names []string
	// nodes are the nodes themselves, in the order of names; nil where only names were given.
	nodes []json.RawMessage
}

// readArgs reads the body of /filter and /prioritize.
func readArgs(body []byte) (*args, error) {
	var envelope struct {
		Pod       json.RawMessage
		Nodes     *nodeList
		NodeNames *list[string]
	}
	if err := readStrict(body, &envelope); err != nil {
		return nil, err
	}
	pod, err := readPod(envelope.Pod)
	if err != nil {
		return nil, err
	}
	a := &args{pod: pod}
	switch {
	case envelope.NodeNames != nil && envelope.Nodes != nil:
		return nil, errors.New("both NodeNames and Nodes are given: kube-scheduler sends the one or the other (nodeCacheCapable)")
	case envelope.NodeNames != nil:
		a.names = *envelope.NodeNames
	case envelope.Nodes != nil:
		a.nodes = append([]json.RawMessage{}, envelope.Nodes.Items...)
		if a.names, err = namesOf(a.nodes); err != nil {
			return nil, err
		}
	default:
		return nil, errors.New("neither NodeNames nor Nodes are given")
	}
	for i, name := range a.names {
		if name == "" {
			return nil, fmt.Errorf("node %d of the list has no name", i)
		}
	}
	return a, nil
}

// nodeList is a v1.NodeList of which the items stay as they are written.
type nodeList struct {
	Kind       string                `json:"kind,omitempty"`
	APIVersion string                `json:"apiVersion,omitempty"`
	Metadata   json.RawMessage       `json:"metadata,omitempty"`
	Items      list[json.RawMessage] `json:"items"`
}

// named is all that is read of an object that is known by name.
type named struct {
	Metadata struct {
		Name string    `json:"name"`
		UID  types.UID `json:"uid"`
	} `json:"metadata"`
}

func namesOf(items []json.RawMessage) ([]string, error) {
	names := make([]string, len(items))
	for i, item := range items {
		var n named
		if err := kjson.UnmarshalCaseSensitivePreserveInts(item, &n); err != nil {
			return nil, fmt.Errorf("reading node %d of the list: %w", i, err)
		}
		names[i] = n.Metadata.Name
	}
	return names, nil
}

// preemption is ExtenderPreemptionArgs as far as it is read, the victims in either of the two forms.
type preemption struct {
	pod     *corev1.Pod
	victims map[string]*extenderv1.MetaVictims
}

// readPreemption reads the body of /preempt.
func readPreemption(body []byte) (*preemption, error) {
	var envelope struct {
		Pod                   json.RawMessage
		NodeNameToVictims     table[*victims[named]]
		NodeNameToMetaVictims table[*victims[*extenderv1.MetaPod]]
	}
	// The pods among the victims may have fields that are newer than this program.
	if err := read(body, &envelope); err != nil {
		return nil, err
	}
	pod, err := readPod(envelope.Pod)
	if err != nil {
		return nil, err
	}
	p := &preemption{pod: pod, victims: make(map[string]*extenderv1.MetaVictims, len(envelope.NodeNameToMetaVictims))}
	for node, v := range envelope.NodeNameToMetaVictims {
		if v == nil {
			return nil, fmt.Errorf("node %q has null for victims", node)
		}
		p.victims[node] = &extenderv1.MetaVictims{Pods: v.Pods, NumPDBViolations: v.NumPDBViolations}
	}
	if len(envelope.NodeNameToVictims) > 0 {
		if len(p.victims) > 0 {
			return nil, errors.New("both NodeNameToMetaVictims and NodeNameToVictims are given: kube-scheduler sends the one or the other (nodeCacheCapable)")
		}
		p.victims = make(map[string]*extenderv1.MetaVictims, len(envelope.NodeNameToVictims))
		for node, v := range envelope.NodeNameToVictims {
			if v == nil {
				return nil, fmt.Errorf("node %q has null for victims", node)
			}
			meta := &extenderv1.MetaVictims{NumPDBViolations: v.NumPDBViolations}
			for i := range v.Pods {
				meta.Pods = append(meta.Pods, &extenderv1.MetaPod{UID: string(v.Pods[i].Metadata.UID)})
			}
			p.victims[node] = meta
		}
	}
	for node, v := range p.victims {
		for i, victim := range v.Pods {
			if victim == nil || victim.UID == "" {
				return nil, fmt.Errorf("victim %d of node %q has no UID", i, node)
			}
		}
	}
	return p, nil
}

// uids returns the victims by node.
func (p *preemption) uids() map[string][]types.UID {
	all := make(map[string][]types.UID, len(p.victims))
	for node, v := range p.victims {
		uids := make([]types.UID, len(v.Pods))
		for i, victim := range v.Pods {
			uids[i] = types.UID(victim.UID)
		}
		all[node] = uids
	}
	return all
}

// readBinding reads the body of /bind.
func readBinding(body []byte) (*extenderv1.ExtenderBindingArgs, error) {
	var b extenderv1.ExtenderBindingArgs
	if err := readStrict(body, &b); err != nil {
		return nil, err
	}
	for field, value := range map[string]string{
		"PodName": b.PodName, "PodNamespace": b.PodNamespace, "PodUID": string(b.PodUID), "Node": b.Node,
	} {
		if value == "" {
			return nil, fmt.Errorf("%s is missing", field)
		}
	}
	return &b, nil
}

// largestPod is more than any API server stores: etcd's limit is 1.5 MiB.
const largestPod = 4 << 20

// endless matches amounts that take minutes to read: a quantity of 1e-99999999 is legal, and as an
// exact number has that many digits. No exponent of four digits means anything.
func endless() *regexp.Regexp { return regexp.MustCompile(`"[+-]?[0-9.]+[eE][+-]?[0-9]{4,}"`) }

func readPod(raw json.RawMessage) (*corev1.Pod, error) {
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return nil, errors.New("no Pod is given")
	case len(raw) > largestPod:
		return nil, fmt.Errorf("the Pod has %d bytes, more than any API server stores", len(raw))
	}
	if amount := endless().Find(raw); amount != nil {
		return nil, fmt.Errorf("reading Pod: %.40s is no amount of anything", amount)
	}
	var pod corev1.Pod
	// A newer kube-scheduler sends fields that this program does not know: they are no mistake.
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &pod); err != nil {
		return nil, fmt.Errorf("reading Pod: %w", err)
	}
	if pod.Name == "" || pod.Namespace == "" || pod.UID == "" {
		return nil, errors.New("the Pod has no name, namespace or UID: it is not one that an API server knows")
	}
	return &pod, nil
}

// readStrict refuses fields that the envelope does not have, and those that come twice: the extender
// API is v1 and frozen, so that they are somebody's mistake.
func readStrict(body []byte, into any) error {
	if len(body) == 0 {
		return errors.New("the body is empty")
	}
	strict, err := kjson.UnmarshalStrict(body, into)
	if err = errors.Join(append(strict, err)...); err != nil {
		return fmt.Errorf("reading the body: %w", err)
	}
	return nil
}

func read(body []byte, into any) error {
	if len(body) == 0 {
		return errors.New("the body is empty")
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(body, into); err != nil {
		return fmt.Errorf("reading the body: %w", err)
	}
	return nil
}

// filterResult is ExtenderFilterResult with the nodes as they came.
type filterResult struct {
	Nodes                      *nodeList
	NodeNames                  *[]string
	FailedNodes                extenderv1.FailedNodesMap
	FailedAndUnresolvableNodes extenderv1.FailedNodesMap
	Error                      string
}

// answer sorts the nodes by their verdicts, in the form in which they were given.
func (a *args) answer(verdicts []verdict) *filterResult {
	r := &filterResult{FailedNodes: extenderv1.FailedNodesMap{}, FailedAndUnresolvableNodes: extenderv1.FailedNodesMap{}}
	names, nodes := make([]string, 0, len(a.names)), []json.RawMessage{}
	for i, v := range verdicts {
		switch {
		case v.reason == "":
			names = append(names, a.names[i])
			if a.nodes != nil {
				nodes = append(nodes, a.nodes[i])
			}
		case v.final:
			r.FailedAndUnresolvableNodes[a.names[i]] = v.reason
		default:
			r.FailedNodes[a.names[i]] = v.reason
		}
	}
	if a.nodes != nil {
		r.Nodes = &nodeList{Items: nodes}
	} else {
		r.NodeNames = &names
	}
	return r
}
