package gpu

import (
	"cmp"
	"math"
	"slices"
)

// The exact search. What a GPU can hold of the wanted profiles is a short list of options, as
// it has at most eight slices. Which GPU takes which option is then a search over GPUs and over
// what is still wanted, and not over single instances: equal wishes and equal GPUs are not
// tried in every order.

// amounts counts instances by wanted kind, which is an index into solver.kinds.
type amounts [maxProfiles]uint16

// option is one way to use a GPU. None of a GPU's options is as cheap as, and no better than,
// another.
type option struct {
	amounts
	cost   int // idle instances that give way
	reused int
	slots  []slot
}

// slot is an instance of an option.
type slot struct {
	kind, start int
	idle        int // in device.idle, -1 for a new one
	slices      uint8
}

// solver finds the cheapest way to take something of each GPU that meets a demand.
type solver struct {
	g       *Geometry
	kinds   []int      // profiles, each once
	options [][]option // by device
	// Of the devices from i on: the most of each kind, and the most memory slices.
	most   []amounts
	memory []int
	memo   map[state]outcome
	// budget is how many states may be looked at; beyond, what is not known yet counts as
	// impossible, and gaveUp is set.
	budget int
	gaveUp bool
}

// state is what is still wanted when the devices before this one are decided.
type state struct {
	device int
	need   amounts
}

type outcome struct {
	cost   int // impossible if there is no way
	option int
}

const impossible = math.MaxInt / 2

// newSolver lists the options of the devices for up to need instances of each kind. Where
// nothing may be destroyed, idle instances stand in the way like those in use.
func newSolver(g *Geometry, devices []device, kinds []int, need amounts, destroy bool) *solver {
	s := &solver{
		g: g, kinds: kinds, budget: math.MaxInt,
		options: make([][]option, len(devices)),
		most:    make([]amounts, len(devices)+1),
		memory:  make([]int, len(devices)+1),
		memo:    map[state]outcome{},
	}
	for i := len(devices) - 1; i >= 0; i-- {
		d := devices[i]
		if !destroy {
			d.held, d.idle = d.all, nil
		}
		s.options[i] = s.alike(devices, i)
		if s.options[i] == nil {
			c := chooser{solver: s, device: &d, limit: need}
			s.options[i] = c.choose()
		}
		s.most[i] = s.most[i+1]
		memory := 0
		for k := range kinds {
			most := uint16(0)
			for _, o := range s.options[i] {
				most = max(most, o.amounts[k])
			}
			s.most[i][k] += most
		}
		for _, o := range s.options[i] {
			memory = max(memory, s.slices(o.amounts))
		}
		s.memory[i] = s.memory[i+1] + memory
	}
	return s
}

// alike returns the options of a later device that is in the same state, nil if there is none.
func (s *solver) alike(devices []device, i int) []option {
	for j := i + 1; j < len(devices); j++ {
		a, b := &devices[i], &devices[j]
		if a.held == b.held && a.all == b.all && slices.EqualFunc(a.idle, b.idle, func(x, y idle) bool {
			return x.profile == y.profile && x.start == y.start && x.slices == y.slices
		}) {
			return s.options[j]
		}
	}
	return nil
}

// slices returns the memory slices of so many instances.
func (s *solver) slices(a amounts) int {
	n := 0
	for k, profile := range s.kinds {
		n += int(a[k]) * s.g.profiles[profile].Memory
	}
	return n
}

// search returns the least cost at which the devices from i on meet the need, impossible if
// they cannot.
func (s *solver) search(i int, need amounts) int {
	if need == (amounts{}) {
		return 0
	}
	if i == len(s.options) || s.slices(need) > s.memory[i] {
		return impossible
	}
	for k := range s.kinds {
		if need[k] > s.most[i][k] {
			return impossible
		}
	}
	at := state{i, need}
	if known, ok := s.memo[at]; ok {
		return known.cost
	}
	if s.budget == 0 {
		s.gaveUp = true
		return impossible
	}
	s.budget--
	best := outcome{cost: impossible}
	for o := range s.options[i] {
		if cost := s.options[i][o].cost + s.search(i+1, need.less(s.options[i][o].amounts)); cost < best.cost {
			best = outcome{cost, o}
		}
		if best.cost == 0 {
			break
		}
	}
	if best.cost < impossible || !s.gaveUp {
		s.memo[at] = best
	}
	return best.cost
}

// less returns what of a need is left.
func (a amounts) less(b amounts) amounts {
	for k := range a {
		a[k] -= min(a[k], b[k])
	}
	return a
}

// ignoreCost makes s search for any way, whatever it costs.
func (s *solver) ignoreCost() {
	for i := range s.options {
		for o := range s.options[i] {
			s.options[i][o].cost = 0
		}
	}
	clear(s.memo)
	s.gaveUp = false
}

// chooser lists the options of one GPU.
type chooser struct {
	*solver
	device     *device
	limit      amounts
	candidates []slot
	chosen     []slot
	found      []option
}

// choose returns the options, the cheapest and then the fullest first.
func (c *chooser) choose() []option {
	for k, profile := range c.kinds {
		for i, x := range c.device.idle {
			if x.profile == profile {
				c.candidates = append(c.candidates, slot{kind: k, start: x.start, idle: i, slices: x.slices})
			}
		}
	}
	existing := c.candidates
	for k, profile := range c.kinds {
		for _, start := range c.g.starts(profile) {
			if !slices.ContainsFunc(existing, func(x slot) bool { return x.kind == k && x.start == start }) {
				c.candidates = append(c.candidates, slot{kind: k, start: start, idle: -1, slices: span(start, c.g.profiles[profile].Memory)})
			}
		}
	}
	c.extend(0, c.device.held, amounts{})
	return c.efficient()
}

// extend notes the choice made so far, and all that hold one more of the candidates from next on.
func (c *chooser) extend(next int, t tally, have amounts) {
	c.note(t, have)
	for i := next; i < len(c.candidates); i++ {
		x := c.candidates[i]
		if have[x.kind] == c.limit[x.kind] || t.slices&x.slices != 0 || !c.g.allows(&t, c.kinds[x.kind]) {
			continue
		}
		with, more := t, have
		c.g.add(&with, c.kinds[x.kind], x.slices)
		more[x.kind]++
		c.chosen = append(c.chosen, x)
		c.extend(i+1, with, more)
		c.chosen = c.chosen[:len(c.chosen)-1]
	}
}

// note keeps the choice if it is the best of its amounts so far.
func (c *chooser) note(t tally, have amounts) {
	var reused Mask
	for _, x := range c.chosen {
		reused = reused.With(x.idle)
	}
	o := option{amounts: have, cost: c.g.giveWay(&t, c.device.idle, reused).Count(), reused: reused.Count()}
	same := slices.IndexFunc(c.found, func(x option) bool { return x.amounts == have })
	switch {
	case same < 0:
		same = len(c.found)
		c.found = append(c.found, option{})
	case cmp.Or(cmp.Compare(c.found[same].cost, o.cost), cmp.Compare(o.reused, c.found[same].reused)) <= 0:
		return
	}
	o.slots = slices.Clone(c.chosen)
	c.found[same] = o
}

// efficient returns the options than which none is both as cheap and as good.
func (c *chooser) efficient() []option {
	var best []option
	for i, o := range c.found {
		if !slices.ContainsFunc(c.found, func(x option) bool {
			return x.amounts != c.found[i].amounts && x.cost <= o.cost && o.amounts.less(x.amounts) == (amounts{})
		}) {
			best = append(best, o)
		}
	}
	slices.SortStableFunc(best, func(a, b option) int {
		return cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(c.solver.slices(b.amounts), c.solver.slices(a.amounts)))
	})
	return best
}

// giveWay returns which of the idle instances have to go beside those counted in t, of which
// reused are some: those whose memory is taken, and, the largest first, those for which
// nothing else is left.
func (g *Geometry) giveWay(t *tally, idle []idle, reused Mask) Mask {
	var gone Mask
	with := *t
	for i, x := range idle {
		switch {
		case reused.Has(i):
		case x.slices&t.slices != 0, x.profile >= 0 && !g.allows(&with, x.profile):
			gone = gone.With(i)
		default:
			g.add(&with, x.profile, x.slices)
		}
	}
	return gone
}

// demand counts the places left in the question by kind.
func (p *placer) demand(left []int) (kinds []int, need amounts) {
	for _, i := range left {
		k := slices.Index(kinds, p.wanted[i])
		if k < 0 {
			k = len(kinds)
			kinds = append(kinds, p.wanted[i])
		}
		need[k]++
	}
	return kinds, need
}

// placeBudget is how many states Place looks at for the fewest instances that have to give way.
const placeBudget = 1 << 15

// solve finds a placement for the places left in the question; at the expense of as few idle
// instances as possible if destroy is set, else of none. Only the last word has to be sure that
// there is none.
func (p *placer) solve(left []int, last, destroy bool) bool {
	kinds, need := p.demand(left)
	s := newSolver(p.g, p.devices, kinds, need, destroy)
	s.budget = placeBudget
	found := s.search(0, need) < impossible
	if !found && s.gaveUp && last {
		s.ignoreCost()
		s.budget = math.MaxInt
		found = s.search(0, need) < impossible
	}
	if !found {
		return false
	}
	for i := 0; need != (amounts{}); i++ {
		// What one device leaves of the need is what the search has asked the next one for.
		chosen := s.options[i][s.memo[state{i, need}].option]
		for _, x := range chosen.slots {
			if need[x.kind] == 0 {
				continue
			}
			need[x.kind]--
			at := slices.IndexFunc(left, func(i int) bool { return p.wanted[i] == kinds[x.kind] })
			if x.idle >= 0 {
				p.setReused(left[at], p.devices[i].idle[x.idle])
			} else {
				p.setNew(left[at], p.devices[i].gpu, x.start)
			}
			left = slices.Delete(left, at, at+1)
		}
	}
	return true
}

// Replaced returns the existing instances that have to go for what Place has found: unused
// ones, whose slices it takes.
func (g *Geometry) Replaced(existing, got []Instance) []Instance {
	var usable Mask
	for _, x := range got {
		usable = usable.With(x.GPU)
	}
	var replaced []Instance
	for _, d := range g.devices(existing, usable) {
		t := d.held
		var reused Mask
		for _, x := range got {
			if x.GPU != d.gpu {
				continue
			}
			profile, taken := g.locate(x)
			g.add(&t, profile, taken)
			reused = reused.With(slices.IndexFunc(d.idle, func(y idle) bool {
				return y.profile == profile && y.slices == taken
			}))
		}
		for i := range g.giveWay(&t, d.idle, reused).Each() {
			replaced = append(replaced, existing[d.idle[i].index])
		}
	}
	return replaced
}
