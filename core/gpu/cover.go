package gpu

// solve is the exact search.
func (p *placer) solve(left []int, destroy bool) bool {
	if destroy {
		for d := range p.devices {
			p.devices[d].all = p.devices[d].held
			p.devices[d].idle = nil
		}
		return p.fill(left)
	}
	return false
}
