package cluster

import "strconv"

import "slices"

// The resources that every cluster has, in the order of their indexes in a Vector.
const (
	// CPU is in thousandths of a core.
	CPU = iota
	// Memory is in bytes.
	Memory
	// Pods is the number of pods a node takes.
	Pods
	firstExtended
)

// Vector is an amount of each resource, indexed as its Resources says. A Vector may be shorter
// than its Resources: what is missing is zero.
type Vector []int64

// At returns the amount at index i, zero where the vector is shorter.
func (v Vector) At(i int) int64 {
	if i < 0 || i >= len(v) {
		return 0
	}
	return v[i]
}

// Add returns v + w. It keeps v's storage where that is long enough.
func (v Vector) Add(w Vector) Vector {
	v = v.grow(len(w))
	for i, x := range w {
		v[i] += x
	}
	return v
}

// Sub returns v - w. It keeps v's storage where that is long enough.
func (v Vector) Sub(w Vector) Vector {
	v = v.grow(len(w))
	for i, x := range w {
		v[i] -= x
	}
	return v
}

// Clone returns a copy with storage of its own.
func (v Vector) Clone() Vector {
	return slices.Clone(v)
}

func (v Vector) grow(n int) Vector {
	for len(v) < n {
		v = append(v, 0)
	}
	return v
}

// Resources gives every resource name an index. It only ever grows, so that an index handed
// out once keeps its meaning; With returns the grown copy.
type Resources struct {
	names []string
	index map[string]int
}

// NewResources returns the table of the resources every cluster has, and of extended.
func NewResources(extended ...string) *Resources {
	r := &Resources{
		names: []string{CPU: "cpu", Memory: "memory", Pods: "pods"},
		index: map[string]int{"cpu": CPU, "memory": Memory, "pods": Pods},
	}
	for _, name := range extended {
		r = r.With(name)
	}
	return r
}

// With returns a table that also has name; r itself if it has it already.
func (r *Resources) With(name string) *Resources {
	if _, ok := r.index[name]; ok {
		return r
	}
	next := &Resources{
		names: append(append([]string(nil), r.names...), name),
		index: make(map[string]int, len(r.index)+1),
	}
	for i, n := range next.names {
		next.index[n] = i
	}
	return next
}

// Index returns the index of name, or -1.
func (r *Resources) Index(name string) int {
	if i, ok := r.index[name]; ok {
		return i
	}
	return -1
}

// Name returns the name at index i. An index that a grown copy of the table handed out has none
// here.
func (r *Resources) Name(i int) string {
	if i < 0 || i >= len(r.names) {
		return "resource " + strconv.Itoa(i)
	}
	return r.names[i]
}

// Len returns how many resources the table has.
func (r *Resources) Len() int { return len(r.names) }

// Extended tells whether index i is an extended resource, such as a GPU.
func (r *Resources) Extended(i int) bool { return i >= firstExtended }
