package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// The product's names, as its users see them.
const (
	labelUID     = "gpu.warp.dev/workload-uid"
	labelAttempt = "gpu.warp.dev/attempt"
	labelRank    = "batch.kubernetes.io/job-completion-index"
	labelJob     = "batch.kubernetes.io/controller-uid"
	gate         = "gpu.warp.dev/plan"
	reporter     = "gpu-orchestrator"
)

// The kinds that are watched, by the names of their resources.
const (
	pods      = "pods"
	nodes     = "nodes"
	jobs      = "jobs.batch"
	workloads = "gpuworkloads.gpu.warp.dev"
	notes     = "events.events.k8s.io"
)

// object is what the oracles read of an object of any of the kinds.
type object struct {
	Metadata struct {
		Name              string
		Namespace         string
		UID               string
		ResourceVersion   string
		Labels            map[string]string
		Annotations       map[string]string
		Finalizers        []string
		DeletionTimestamp *time.Time
	}
	Spec struct {
		// Pods.
		NodeName        string
		Containers      []container
		InitContainers  []container
		SchedulingGates []struct{ Name string }
		// Jobs.
		Completions *int
		// GPUWorkloads.
		RestartPolicy string
		Suspend       bool

		ActiveDeadlineSeconds *int
		RetryPolicy           struct{ MaxRetries *int }
	}
	Status struct {
		Phase      string
		Message    string
		Conditions []condition
		// Nodes.
		Allocatable map[string]string
		// Jobs.
		Failed int
		// GPUWorkloads.
		Attempt    int
		RetryCount int
		JobName    string
	}
	// Events.
	Regarding           struct{ Kind, Name, UID string }
	Reason              string
	Note                string
	ReportingController string
	Series              *struct{ Count int }
}

type container struct {
	RestartPolicy string
	Resources     struct{ Limits map[string]string }
}

type condition struct{ Type, Status, Reason string }

// change is one object at one revision.
type change struct {
	version uint64
	kind    string
	// created says that the object was not there before, deleted that this was its last state.
	created, deleted bool
	// seen is when the judge was told, by its own clock.
	seen time.Time
	*object
}

func parseObject(kind string, raw json.RawMessage) (*object, uint64, error) {
	o := &object{}
	if err := json.Unmarshal(raw, o); err != nil {
		return nil, 0, fmt.Errorf("reading one of %s: %w", kind, err)
	}
	version, err := strconv.ParseUint(o.Metadata.ResourceVersion, 10, 64)
	if err != nil {
		return nil, 0, fmt.Errorf("reading the revision of %s %s: %w", kind, o.name(), err)
	}
	return o, version, nil
}

func (o *object) name() string {
	if o.Metadata.Namespace == "" {
		return o.Metadata.Name
	}
	return o.Metadata.Namespace + "/" + o.Metadata.Name
}

func (o *object) workload() string { return o.Metadata.Labels[labelUID] }

// is tells whether a condition holds, and why.
func (o *object) is(kind string) (bool, string) {
	for _, c := range o.Status.Conditions {
		if c.Type == kind {
			return c.Status == "True", c.Reason
		}
	}
	return false, ""
}

// terminal tells whether a pod has ended, so that it holds nothing any more.
func (o *object) terminal() bool { return o.Status.Phase == "Succeeded" || o.Status.Phase == "Failed" }

// holds tells whether a pod holds what it asked for on its node.
func (o *object) holds() bool { return o.Spec.NodeName != "" && !o.terminal() }

// devices are the extended resources of a pod, the ones that nobody can share: as the scheduler
// adds them up, sidecars with the containers, other init containers one after the other.
func (o *object) devices() map[string]int64 {
	sum := make(map[string]int64)
	add := func(c container) {
		for name, text := range c.Resources.Limits {
			if n, ok := amount(name, text); ok {
				sum[name] += n
			}
		}
	}
	for _, c := range o.Spec.Containers {
		add(c)
	}
	for _, c := range o.Spec.InitContainers {
		if c.RestartPolicy == "Always" {
			add(c)
		}
	}
	for _, c := range o.Spec.InitContainers {
		if c.RestartPolicy == "Always" {
			continue
		}
		for name, text := range c.Resources.Limits {
			if n, ok := amount(name, text); ok {
				sum[name] = max(sum[name], n)
			}
		}
	}
	return sum
}

// amount reads a quantity of an extended resource: one whose name has a domain.
func amount(name, text string) (int64, bool) {
	for _, r := range name {
		if r == '/' {
			q, err := resource.ParseQuantity(text)
			return q.Value(), err == nil
		}
	}
	return 0, false
}
