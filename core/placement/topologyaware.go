package placement

// TopologyAware takes the node, and the domain, with the best score of the requirement
// documents: how well the pod's GPUs are connected, how little is left unused, how evenly. A
// gang goes into as few domains of every level as will hold it.
type TopologyAware struct{}

// Name implements Strategy.
func (TopologyAware) Name() string { return "topologyAware" }

// Score implements Strategy: the weighted mean of the node's terms, 0 to 100.
func (TopologyAware) Score(c *Candidate) float64 {
	terms := nodeTerms(c)
	return mean(terms[:])
}

// WeighsOpinions implements Weigher: they are one more term.
func (TopologyAware) WeighsOpinions() bool { return true }

// Terms implements TermExplainer.
func (TopologyAware) Terms(c *Candidate) []Term {
	terms := nodeTerms(c)
	if c.OpinionWeight == 0 {
		return terms[:len(terms)-1]
	}
	return terms[:]
}

// ScoreDomain implements DomainScorer: the weighted mean of the domain's terms, 0 to 100.
func (TopologyAware) ScoreDomain(c *DomainCandidate) float64 {
	terms := domainTerms(c)
	return mean(terms[:])
}

// DomainTerms implements DomainTermExplainer.
func (TopologyAware) DomainTerms(c *DomainCandidate) []Term {
	terms := domainTerms(c)
	return terms[:]
}

// Packs implements Packer.
func (TopologyAware) Packs() bool { return true }
