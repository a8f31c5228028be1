package explaining

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/reyisjones/gpu-orchestrator/core/explain"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

// commands returns what carries a remedy out. It is not possible if the API would refuse it.
func (f *filling) commands(r *explain.Remedy) (lines []string, possible bool) {
	switch r.Kind {
	case explain.WaitFor:
		if f.workload != nil && r.Start.Known && r.Start.Latest != placement.Never {
			return []string{fmt.Sprintf("kubectl -n %s wait gpuworkload/%s --for=condition=Scheduled --timeout=%ds",
				f.workload.Namespace, f.workload.Name, int(r.Start.Latest.Seconds())+60)}, true
		}
	case explain.Edit:
		return f.edit(r.Change)
	case explain.Mend:
		return f.mend(r.Mend), true
	case explain.Preempt:
		if w := f.workload; w != nil {
			return []string{patch(w.Namespace, "gpuworkload", w.Name, map[string]any{"preemptionPolicy": "PreemptLowerPriority"})}, true
		}
	case explain.Evict:
		return leave(r.Subjects), true
	case explain.Move:
		return f.move(r.Subjects), true
	}
	return nil, true
}

// edit is a patch of the workload's spec.
func (f *filling) edit(c *placement.Change) ([]string, bool) {
	w := f.workload
	if w == nil {
		return nil, true // Pods are made anew, by whoever made them, from another template.
	}
	var spec map[string]any
	n, _ := strconv.Atoi(c.To)
	slice := 0
	if t := w.Spec.Topology; t != nil && t.Slice != nil {
		slice = int(t.Slice.Size)
	}
	switch c.Field {
	case "topology.required":
		var to any
		if c.To != "none" {
			to = c.To
		}
		spec = map[string]any{"topology": map[string]any{"required": to}}
	case "slices":
		spec = map[string]any{"topology": map[string]any{"slice": nil}}
	case "count":
		if slice > 0 && n%slice != 0 {
			return nil, false
		}
		spec = map[string]any{"parallelism": n}
		if w.Spec.MinParallelism != nil {
			spec["minParallelism"] = nil
		}
	case "gpus":
		spec = map[string]any{"gpuCount": n}
	default:
		return nil, true
	}
	return []string{patch(w.Namespace, "gpuworkload", w.Name, spec)}, true
}

func patch(namespace, kind, name string, spec map[string]any) string {
	body, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil {
		panic(err) // Maps of strings and numbers have a form.
	}
	return fmt.Sprintf("kubectl -n %s patch %s %s --type=merge -p %s", namespace, kind, name, quoted(string(body)))
}

// quoted is the text as one word of a shell, whatever is in it.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

func suspend(namespace, kind, name string, is bool) string {
	return patch(namespace, kind, name, map[string]any{"suspend": is})
}

func (f *filling) mend(nodes []string) []string {
	var cordoned, out []string
	for _, name := range nodes {
		n := f.question.Snapshot.Node(name)
		if !n.Ready || n.Broken != 0 {
			out = append(out, name)
		}
		if n.Cordoned {
			cordoned = append(cordoned, name)
		}
	}
	var lines []string
	if len(out) > 0 {
		lines = append(lines, "kubectl describe node "+strings.Join(out, " "))
	}
	if len(cordoned) > 0 {
		lines = append(lines, "kubectl uncordon "+strings.Join(cordoned, " "))
	}
	return lines
}

// leave stops workloads. It can say nothing of those whose names are hidden, of kinds that nobody
// knows how to stop, and of names that no object can have: who makes a pod writes its owner as
// they like, and people paste these lines into a shell.
func leave(subjects []string) []string {
	var lines []string
	for _, subject := range subjects {
		namespace, kind, name := subjectOf(subject)
		switch kind {
		case "GPUWorkload":
			lines = append(lines, suspend(namespace, "gpuworkload", name, true))
		case "Job":
			lines = append(lines, suspend(namespace, "job", name, true))
		case "Pod":
			lines = append(lines, fmt.Sprintf("kubectl -n %s delete pod %s", namespace, name))
		case "StatefulSet", "ReplicaSet", "Deployment", "ReplicationController":
			lines = append(lines, fmt.Sprintf("kubectl -n %s scale %s %s --replicas=0", namespace, strings.ToLower(kind), name))
		}
	}
	return lines
}

// subjectOf reads "namespace/name" of a GPUWorkload and "namespace/Kind/name". The kind is empty
// where the namespace or the name is none that the API server lets an object have.
func subjectOf(subject string) (namespace, kind, name string) {
	parts := strings.Split(subject, "/")
	switch len(parts) {
	case 2:
		namespace, kind, name = parts[0], "GPUWorkload", parts[1]
	case 3:
		namespace, kind, name = parts[0], parts[1], parts[2]
	}
	if len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return "", "", ""
	}
	return namespace, kind, name
}

// move stops workloads and starts them again once the one that waits has its places: they are then
// planned where there is room.
func (f *filling) move(subjects []string) []string {
	lines := leave(subjects)
	if f.workload == nil || len(lines) < len(subjects) {
		return nil
	}
	lines = append(lines, fmt.Sprintf("kubectl -n %s wait gpuworkload/%s --for=condition=Scheduled --timeout=120s", f.workload.Namespace, f.workload.Name))
	for _, subject := range subjects {
		namespace, kind, name := subjectOf(subject)
		if kind != "GPUWorkload" {
			return nil
		}
		lines = append(lines, suspend(namespace, "gpuworkload", name, false))
	}
	return lines
}
