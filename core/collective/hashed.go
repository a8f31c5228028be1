package collective

import "math"

const (
	// crowd is how many flows a link has on average at most before several are taken for one, which
	// bounds the work. Nobody builds fabrics with so many to a cable.
	crowd = 256
	// mostFlows is more than there are by chance, 20 standard deviations above a crowd.
	mostFlows = 576
	// negligible is the chance of a fuller link that is not looked at.
	negligible = 1e-7
	// oneLink is up to how many links are one, as rounding goes.
	oneLink = 1 + 1e-9
)

// trunk is an uplink of several links, as the flows of a gang find it. Counts of flows may have a
// part: a flow that is there with that chance.
type trunk struct {
	// own is how many flows the gang has there, and links how many links: 1 each at least.
	own, links float64
	// empty is the logarithm of the chance that a flow is not on a given link, and with the chance
	// that an own flow is.
	empty, with float64
	// used is how many links are expected to carry own flows.
	used float64
}

func newTrunk(own, links float64) trunk {
	t := trunk{own: own, links: links, with: 1, used: 1}
	if links > oneLink {
		whole, part := math.Modf(own)
		t.empty = math.Log1p(-1 / links)
		with := -math.Expm1(whole * t.empty)
		t.with = with + (1-with)*part/links
		t.used = links * t.with
	}
	return t
}

// mean is how many flows are expected on a link that carries own ones.
func (t *trunk) mean(others float64) float64 { return t.own/t.used + others/t.links }

// fullest finds how many flows are expected on the fullest link that carries flows of a gang, over
// all uplinks that it crosses.
type fullest struct {
	// scale is how many flows are taken for one.
	scale float64
	// least is how many there are on the fullest link for sure.
	least float64
	// log is by k from 1 on, and below top, the logarithm of the chance that no link has more than
	// k*scale flows. Beyond, that is 0. More has what there is no room for in log.
	log  [32]float64
	more []float64
	top  int
}

// at returns the place of k, up to top.
func (f *fullest) at(k int) *float64 {
	if k < len(f.log) {
		return &f.log[k]
	}
	if k -= len(f.log); k == len(f.more) {
		f.more = append(f.more, 0)
	}
	return &f.more[k]
}

// crowded tells that a trunk will be added with so many flows of others. It is called for all of
// them before add for any.
func (f *fullest) crowded(t *trunk, others float64) {
	if t.links > oneLink {
		f.scale = max(f.scale, t.mean(others)/crowd)
	}
}

// add counts as many such trunks, each with so many flows of others. How many flows there are in all
// on a link that carries own ones is known,
//
//	P(own+others > k | own > 0) = (P(own+others > k) - P(own = 0) * P(others > k)) / P(own > 0),
//
// of binomial distributions with chance 1/links. Such links are then taken for independent.
func (f *fullest) add(t *trunk, others, times float64) {
	if t.links <= oneLink {
		f.least = max(f.least, (t.own+others)/t.links)
		return
	}
	if f.scale > 1 {
		fewer := newTrunk(max(1, t.own/f.scale), t.links)
		t, others = &fewer, others/f.scale
	}
	own, ownPart := math.Modf(t.own)
	whole, part := math.Modf(others)
	all, foreign := newBinomial(own+whole, t), newBinomial(whole, t)
	ownPart, part = ownPart/t.links, part/t.links
	times *= t.used
	odds, mean := 1/(t.links-1), t.mean(others)
	for k := 1; k < mostFlows && float64(k) < own+whole+2; k++ {
		before, step := all.at, odds/float64(k)
		all.to(k, step)
		foreign.to(k, step)
		// The parts of flows shift what is at k to k+1.
		more := 1 - all.upTo + (ownPart+part)*all.at - ownPart*part*(all.at-before)
		more = (more - (1-t.with)*(1-foreign.upTo+part*foreign.at)) / t.with
		if times*more < negligible && float64(k) > mean {
			return
		}
		f.top = max(f.top, k+1)
		*f.at(k) += times * logOfRest(min(1, max(0, more)))
	}
}

// logOfRest returns log(1-x), of small x by the series of the area hyperbolic tangent, which is exact
// to eight digits there and half of the work.
func logOfRest(x float64) float64 {
	if x > .3 {
		return math.Log(1 - x)
	}
	z := x / (2 - x)
	y := z * z
	return -2 * z * (1 + y*(1./3+y*(1./5+y*(1./7+y*(1./9)))))
}

// expected returns the number of flows, at least 1.
func (f *fullest) expected() float64 {
	sum := max(1, f.least)
	k := int(min(float64(f.top), sum/f.scale))
	if k == 0 && f.top > 0 {
		sum, k = f.scale, 1 // there is always a flow
	}
	for ; k < f.top; k++ {
		next := float64(k+1) * f.scale
		sum += (next - max(f.least, float64(k)*f.scale)) * (1 - math.Exp(*f.at(k)))
	}
	return sum
}

// binomial walks along the distribution of how many of its flows are on a link.
type binomial struct {
	flows float64
	// first is where it begins, and log the logarithm of the chance of one less: fewer are
	// negligible, and zero may be too small a number.
	first int
	log   float64
	// at is the chance of exactly as many flows as it stands at, upTo that of at most so many.
	at, upTo float64
}

// newBinomial stands at no flow.
func newBinomial(flows float64, t *trunk) binomial {
	b := binomial{flows: flows, upTo: 1, at: 1}
	if flows == 0 {
		return b
	}
	mean := flows / t.links
	first := mean - 12*math.Sqrt(mean*(1-1/t.links)) - 12
	if first < 1 {
		b.at = math.Exp(flows * t.empty)
		b.upTo = b.at
		return b
	}
	b.first, b.at, b.upTo = int(first), 0, 0
	b.log = flows * t.empty
	for k := range b.first - 1 {
		b.log += math.Log((flows - float64(k)) / (t.links - 1) / float64(k+1))
	}
	return b
}

// to goes on to k, one more than before, where step is 1/(links-1)/k.
func (b *binomial) to(k int, step float64) {
	if k == b.first {
		b.at = math.Exp(b.log)
	}
	if b.at *= step * (b.flows - float64(k-1)); b.at < 0 {
		b.at = 0
	}
	b.upTo += b.at
}
