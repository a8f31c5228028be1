package sim

import (
	"maps"
	"slices"
)

// holds tells whether the pod takes anything of its node. The lost members of the request take
// nothing any more.
func (r *Running) holds(s *Scenario) bool {
	return r.Node != "" && r.Phase != "Succeeded" && r.Phase != "Failed" && !r.lost(s)
}

// member tells whether the pod is of the workload that the request is about.
func (r *Running) member(s *Scenario) bool { return r.Workload == s.Request.Name && r.Workload != "" }

// lost tells whether the pod is one of those that the request replaces.
func (r *Running) lost(s *Scenario) bool {
	return r.member(s) && slices.Contains(s.Request.Replaces, r.Name)
}

// workload returns the name of what the pod belongs to: itself if it says nothing.
func (r *Running) workload() string {
	if r.Workload == "" {
		return r.Name
	}
	return r.Workload
}

func (c *checker) allRunning() {
	names := map[string]bool{}
	for i := range c.Running {
		r := &c.Running[i]
		p := path{"running", i}
		c.named(p.with("name"), r.Name, "pod", names)
		c.oneOf(p.with("phase"), r.Phase, "", "Pending", "Running", "Succeeded", "Failed", "Unknown")
		c.milli(p.with("gpuMilli"), r.GPUMilli)
		c.atLeast(p.with("bandwidthMbps"), r.BandwidthMbps, 0)
		c.runtime(p.with("ends"), r.Ends)
		c.placedAgain(p, r)
		if r.Group != "" && r.member(c.Scenario) && !slices.ContainsFunc(c.Request.Groups, func(g Group) bool { return g.Name == r.Group }) {
			c.bad(p.with("group"), "%q is no group of the request that the pod belongs to; expected one of them", r.Group)
		}
		if !r.holds(c.Scenario) {
			continue
		}
		o := c.nodes[r.Node]
		if o == nil {
			c.bad(p.with("node"), "%q is not there; expected the name of one of the nodes, or \"\" for none", r.Node)
			continue
		}
		c.take(p, r, o)
	}
}

// take adds up what pods hold of a node, and notes what it does not have.
func (c *checker) take(p path, r *Running, o *occupied) {
	for _, name := range slices.Sorted(maps.Keys(r.Requests)) {
		amount := r.Requests[name]
		have, told := o.Allocatable[name]
		if amount == 0 || name == podsResource && !told {
			continue
		}
		if overfull(name) {
			have = mostOfAnything
		}
		// Both are bounded, so that the sum is, too.
		if o.sum[name]+amount > have {
			c.bad(p.with("requests", name), "makes %s of %s on node %s, which has %s; expected no more than it has",
				show(name, o.sum[name]+amount), name, o.Name, show(name, have))
			continue
		}
		o.sum[name] += amount
	}
	if _, says := r.Requests[podsResource]; !says && !r.uncounted(c.Scenario) {
		if have, told := o.Allocatable[podsResource]; told && o.sum[podsResource]+1 > have {
			c.bad(p, "is pod %d on node %s, which takes %d; expected no more than it takes", o.sum[podsResource]+1, o.Name, have)
		} else {
			o.sum[podsResource]++
		}
	}
	c.takeGPUs(p, r, o)
}

// overfull tells whether a node may hold more of a resource than it offers. A node that shrank
// does, and takes no further pod; devices cannot be given out twice.
func overfull(name string) bool {
	return name == "cpu" || name == "memory" || name == "ephemeral-storage"
}

// uncounted tells whether the pod is a member of the request that its node does not even count
// as a pod: see requests in docs/scenario.md.
func (r *Running) uncounted(s *Scenario) bool { return r.member(s) && len(r.Requests) == 0 }

func (c *checker) takeGPUs(p path, r *Running, o *occupied) {
	if r.GPUMilli > 0 && len(r.GPUs) == 0 {
		c.bad(p.with("gpuMilli"), "does not say of which GPU; expected gpus, too")
	}
	if asked := r.Requests[gpuResource]; len(r.GPUs) > 0 && asked > 0 && r.GPUMilli == 0 && asked != int64(len(r.GPUs)) {
		c.bad(p.with("gpus"), "names %s, but the pod asks for %d; expected as many", counted(len(r.GPUs), "GPU"), asked)
	}
	share := 1000
	if r.GPUMilli > 0 {
		share = r.GPUMilli
	}
	for _, i := range c.indexes(p.with("gpus"), r.GPUs, len(o.free)) {
		if o.free[i] < share {
			c.bad(p.with("gpus"), "takes %d thousandths of GPU %d of node %s, of which %d are free; expected no more", share, i, o.Name, o.free[i])
			continue
		}
		o.free[i] -= share
	}
}
