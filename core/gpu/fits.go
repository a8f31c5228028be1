package gpu

// Fits says how many pods fit at once on the usable GPUs, each with instances of all wanted
// profiles, up to limit. Unused instances are taken or give way.
func (g *Geometry) Fits(existing []Instance, usable Mask, want []string, limit int) (n int, exact bool) {
	var all []string
	for n < limit {
		all = append(all, want...)
		if _, _, ok := g.Place(existing, usable, all); !ok {
			break
		}
		n++
	}
	return n, true
}
