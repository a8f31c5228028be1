package sim

import (
	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// Policy is what the cluster's operator says of nodes for the request. A scenario has what came
// of expressions, not the expressions: it needs nothing but itself to be answered.
type Policy struct {
	// Weight is what the scores count; 0 is no scores.
	Weight float64 `yaml:"weight"`
	// Nodes are those of which anything is said. Others are let in, with score 50.
	Nodes []PolicyNode `yaml:"nodes"`
}

// PolicyNode is what is said of one node.
type PolicyNode struct {
	Name string `yaml:"name"`
	// Refused is why no pod may go there, "" if one may.
	Refused string `yaml:"refused"`
	// Score is how good it is, 0 to 100; nil is 50.
	Score *float64 `yaml:"score"`
}

func (c *checker) policy() {
	if c.Policy == nil {
		return
	}
	p := path{"policy"}
	const most = 1e6
	if w := c.Policy.Weight; !(w >= 0 && w <= most) {
		c.bad(p.with("weight"), "is %g; expected 0 to %g", w, most)
	}
	seen := map[string]bool{}
	for i, n := range c.Policy.Nodes {
		at := p.with("nodes", i)
		switch {
		case c.nodes[n.Name] == nil:
			c.bad(at.with("name"), "%q is no node; expected the name of one of the nodes", n.Name)
		case seen[n.Name]:
			c.bad(at.with("name"), "%q is named twice; expected each node once", n.Name)
		}
		seen[n.Name] = true
		if n.Score != nil {
			c.percent(at.with("score"), *n.Score)
		}
	}
}

// neutralScore is the score of a node of which the policy says nothing.
const neutralScore = 50

// stated are the rules of a scenario, which says what is to be said of each node.
type stated struct {
	weight float64
	byNode map[string]cluster.Judgement
}

// judgements returns what the scenario's policy says, nil if it has none.
func (s *Scenario) judgements() cluster.Rules {
	if s.Policy == nil {
		return nil
	}
	r := &stated{weight: s.Policy.Weight, byNode: map[string]cluster.Judgement{}}
	for _, n := range s.Policy.Nodes {
		j := cluster.Judgement{Refusal: n.Refused, Score: neutralScore}
		if n.Score != nil {
			j.Score = *n.Score
		}
		r.byNode[n.Name] = j
	}
	return r
}

// Judge implements cluster.Rules.
func (r *stated) Judge(m *cluster.Machine, _ *cluster.Resources) cluster.Judgement {
	if j, said := r.byNode[m.Name]; said {
		return j
	}
	return cluster.Judgement{Score: neutralScore}
}

// Weight implements cluster.Rules.
func (r *stated) Weight() float64 { return r.weight }
