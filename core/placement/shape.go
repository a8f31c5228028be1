package placement

import (
	"maps"
	"reflect"
	"slices"
)

// hashShape is quick and may be the same for shapes that are not: sameShape has the last word.
func hashShape(q *Shape) uint64 {
	h := hashString("")
	add := func(x uint64) { h = (h ^ x) * fnvPrime }
	for _, x := range q.Resources {
		add(uint64(x))
	}
	add(uint64(q.GPUs))
	add(uint64(q.Milli))
	add(uint64(q.GPUResource))
	add(uint64(q.Include))
	add(uint64(len(q.MIG)))
	add(uint64(len(q.Tolerations)))
	add(uint64(q.GPU.MemoryMiB))
	add(hashString(q.GPU.Product))
	add(hashString(string(q.Prefer)))
	labels := uint64(len(q.Selector.Labels))
	for k, v := range q.Selector.Labels {
		labels ^= hashString(k) * (hashString(v) | 1)
	}
	add(labels)
	for _, t := range q.Selector.Terms {
		for i := range t {
			add(hashString(t[i].Key))
			for _, v := range t[i].Values {
				add(hashString(v))
			}
		}
	}
	return mix(h)
}

func sameShape(a, b *Shape) bool {
	return slices.Equal(a.Resources, b.Resources) &&
		a.GPUResource == b.GPUResource && a.GPUResourceName == b.GPUResourceName && a.GPUs == b.GPUs &&
		a.Missing == b.Missing && a.GPU == b.GPU && a.Milli == b.Milli && slices.Equal(a.MIG, b.MIG) &&
		a.Include == b.Include && a.Prefer == b.Prefer && a.Rules == b.Rules && maps.Equal(a.Selector.Labels, b.Selector.Labels) &&
		slices.Equal(a.Tolerations, b.Tolerations) &&
		(len(a.Selector.Terms) == 0 && len(b.Selector.Terms) == 0 || reflect.DeepEqual(a.Selector.Terms, b.Selector.Terms)) &&
		(len(a.Likes) == 0 && len(b.Likes) == 0 || reflect.DeepEqual(a.Likes, b.Likes))
}

// cloneShape keeps the cache's shapes apart from those of callers, who may write to theirs.
// Terms are shared: nobody writes to the inside of a selector.
func cloneShape(q *Shape) *Shape {
	own := *q
	own.Resources = q.Resources.Clone()
	own.MIG = slices.Clone(q.MIG)
	own.Tolerations = slices.Clone(q.Tolerations)
	own.Selector.Labels = maps.Clone(q.Selector.Labels)
	own.Selector.Terms = slices.Clone(q.Selector.Terms)
	own.Likes = slices.Clone(q.Likes)
	return &own
}
