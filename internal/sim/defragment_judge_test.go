package sim

// moved takes what a pod holds from where it moves to, and tells whether it moves.
func (j *verdict) moved(r *Running) bool {
	for _, m := range j.a.Moves {
		for _, p := range m.Pods {
			if p.Pod != r.Name {
				continue
			}
			if p.From != r.Node || m.Workload != r.workload() || !r.Movable {
				j.bad("%s moves from %s and may not", p.Pod, p.From)
			}
			if j.nodes[p.To] == nil {
				j.bad("%s moves to %s, which is no node", p.Pod, p.To)
				return true
			}
			j.usable(&Group{NodeSelector: r.NodeSelector, Tolerations: r.Tolerations}, p.To)
			j.use(p.To, r.Requests, 1)
			for name := range r.Requests {
				if left := j.free[p.To][name]; left < 0 {
					j.bad("%d too much of %s on %s", -left, name, p.To)
				}
			}
			for _, k := range p.GPUs {
				share := r.GPUMilli
				if share == 0 {
					share = 1000
				}
				if j.gpus[p.To][k] -= share; j.gpus[p.To][k] < 0 {
					j.bad("GPU %d of %s is given out twice", k, p.To)
				}
			}
			return true
		}
	}
	return false
}

// movedLevels makes sure that what moved is in one domain of its level.
func (j *verdict) movedLevels() {
	if n := len(j.a.Moves); j.s.Defragment == nil && n > 0 || j.s.Defragment != nil && j.s.Defragment.MaxMoves > 0 && n > j.s.Defragment.MaxMoves {
		j.bad("%d moves, which is more than is allowed", n)
	}
	seen := map[string]bool{}
	for _, m := range j.a.Moves {
		if seen[m.Workload] {
			j.bad("%s moves twice", m.Workload)
		}
		seen[m.Workload] = true
		to := map[string]string{}
		for _, p := range m.Pods {
			to[p.Pod] = p.To
		}
		level, members := "", map[string]int{}
		for i := range j.s.Running {
			r := &j.s.Running[i]
			if r.workload() != m.Workload {
				continue
			}
			node := r.Node
			if to[r.Name] != "" {
				node = to[r.Name]
			}
			if r.Level != "" {
				level = r.Level
			}
			members[node]++
		}
		j.oneDomain(m.Workload, level, members)
	}
}
