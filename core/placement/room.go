package placement

import "github.com/reyisjones/gpu-orchestrator/core/cluster"

// room is how many pods of one shape every node takes, and every domain of every level.
type room struct {
	// fits is by position of the node; sums by level and index of the domain.
	fits  []int32
	sums  [][]int64
	total int64
}

// reset makes room for the snapshot's nodes and domains, keeping the storage it has.
func (m *room) reset(s *cluster.Snapshot) {
	m.fits = resized(m.fits, s.Len())
	m.sums = resized(m.sums, len(s.Levels))
	for l := range m.sums {
		m.sums[l] = resized(m.sums[l], len(s.Domains(l)))
	}
	m.total = 0
}

// copyOf makes m a copy of other, in the storage it has.
func (m *room) copyOf(other *room) {
	m.fits = append(m.fits[:0], other.fits...)
	m.sums = resized(m.sums, len(other.sums))
	for l := range m.sums {
		m.sums[l] = append(m.sums[l][:0], other.sums[l]...)
	}
	m.total = other.total
}

// set says that the node at position i takes fits pods.
func (m *room) set(s *cluster.Snapshot, i int, fits int32) {
	delta := int64(fits) - int64(m.fits[i])
	if delta == 0 {
		return
	}
	m.fits[i] = fits
	m.total += delta
	for l := range m.sums {
		if d := s.DomainOf(l, i); d >= 0 {
			m.sums[l][d] += delta
		}
	}
}

// in returns how many pods the domain takes.
func (m *room) in(s *cluster.Snapshot, d cluster.Domain) int64 {
	switch {
	case d.Level < 0:
		return m.total
	case d.First == d.End:
		return 0
	}
	return m.sums[d.Level][s.DomainOf(d.Level, d.First)]
}

// resized returns s with n zero entries, in the storage it has where that is large enough.
func resized[T any](s []T, n int) []T {
	if cap(s) < n {
		grown := make([]T, n)
		copy(grown, s[:cap(s)]) // Inner slices keep their storage, too.
		s = grown
	}
	s = s[:n]
	var zero T
	if _, nested := any(zero).([]int64); nested {
		return s
	}
	for i := range s {
		s[i] = zero
	}
	return s
}
