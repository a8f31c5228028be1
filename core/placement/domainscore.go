package placement

// domainTerms returns the terms of a domain's score, each 0 to 100 (requirement document 5,
// "Domain Selection").
func domainTerms(c *DomainCandidate) [4]Term {
	w := &c.Scoring.Domain
	return [4]Term{
		{Name: "availability", Value: percent(float64(c.Room), float64(c.Wanted)), Weight: w.Availability},
		{Name: "alignment", Value: percent(float64(c.Fewest), float64(c.Parts)), Weight: w.Alignment},
		{Name: "utilization", Value: utilizationTerm(c), Weight: w.Utilization},
		{Name: "history", Value: opinion(c.Scoring.History, c.Key), Weight: w.History},
	}
}

// utilizationTerm is the share of the domain's GPUs in use once the gang runs, 0 to 100: full
// domains first, so that empty ones stay whole. Neutral for a domain without GPUs.
func utilizationTerm(c *DomainCandidate) float64 {
	if c.GPUs <= 0 {
		return neutral
	}
	used := float64(c.GPUs) - float64(c.FreeGPUs) + float64(c.Taking)
	return percent(used, float64(c.GPUs))
}

// percent returns part of whole in percent, 0 to 100; 100 of nothing.
func percent(part, whole float64) float64 {
	if whole <= 0 {
		return 100
	}
	return within(100*part/whole, 0, 100)
}
