package capture

import (
	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

// policy is what came of the rules of the cluster's operator.
type policy struct {
	Weight float64      `yaml:"weight,omitempty"`
	Nodes  []policyNode `yaml:"nodes,omitempty"`
}

type policyNode struct {
	Name    string   `yaml:"name"`
	Refused string   `yaml:"refused,omitempty"`
	Score   *float64 `yaml:"score,omitempty"`
}

type scoring struct {
	Node   nodeWeights   `yaml:"node,flow"`
	Domain domainWeights `yaml:"domain,flow"`
}

type nodeWeights struct {
	Topology  float64 `yaml:"topology"`
	Resources float64 `yaml:"resources"`
	Balance   float64 `yaml:"balance"`
	Hint      float64 `yaml:"hint"`
}

type domainWeights struct {
	Availability float64 `yaml:"availability"`
	Alignment    float64 `yaml:"alignment"`
	Utilization  float64 `yaml:"utilization"`
	History      float64 `yaml:"history"`
}

// policyOf writes what the rules say of each node, nil for none.
func policyOf(s *cluster.Snapshot, rules cluster.Rules) *policy {
	if rules == nil {
		return nil
	}
	out := &policy{Weight: rules.Weight()}
	for _, n := range s.Nodes() {
		j := rules.Judge(n.Machine, s.Resources)
		said := policyNode{Name: n.Name, Refused: j.Refusal}
		if out.Weight > 0 && j.Refusal == "" {
			said.Score = &j.Score
		}
		if said.Refused != "" || said.Score != nil {
			out.Nodes = append(out.Nodes, said)
		}
	}
	return out
}

// scoringOf writes the weights, nil for the default ones.
func scoringOf(s *placement.Scoring) *scoring {
	if s == nil {
		return nil
	}
	return &scoring{Node: nodeWeights(s.Node), Domain: domainWeights(s.Domain)}
}
