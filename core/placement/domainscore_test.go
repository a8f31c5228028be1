package placement

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestDomainTerms(t *testing.T) {
	history := map[string]float64{"s1/l1": 80, "s1/l2": 120, "s1/l3": -1, "s1/l4": math.NaN()}
	for _, c := range []struct {
		name                                          string
		domain                                        DomainCandidate
		availability, alignment, utilization, history float64
	}{
		{"roomy and empty", DomainCandidate{Wanted: 4, Room: 16, Parts: 1, Fewest: 1, GPUs: 128, FreeGPUs: 128, Taking: 32}, 100, 100, 25, 50},
		{"fits exactly and fills it", DomainCandidate{Wanted: 4, Room: 4, Parts: 1, Fewest: 1, GPUs: 128, FreeGPUs: 32, Taking: 32}, 100, 100, 100, 50},
		{"half of an elastic gang", DomainCandidate{Wanted: 8, Room: 4, Parts: 1, Fewest: 1, GPUs: 64, FreeGPUs: 64, Taking: 32}, 50, 100, 50, 50},
		{"torn", DomainCandidate{Wanted: 4, Room: 4, Parts: 4, Fewest: 1, GPUs: 64, FreeGPUs: 64}, 100, 25, 0, 50},
		{"went well", DomainCandidate{Key: "s1/l1", Wanted: 1, Room: 1, Parts: 1, Fewest: 1, GPUs: 8, FreeGPUs: 8, Taking: 8}, 100, 100, 100, 80},
		{"too good", DomainCandidate{Key: "s1/l2", Wanted: 1, Room: 1, Parts: 1, Fewest: 1, GPUs: 8, FreeGPUs: 8}, 100, 100, 0, 100},
		{"too bad", DomainCandidate{Key: "s1/l3", Wanted: 1, Room: 1, Parts: 1, Fewest: 1, GPUs: 8, FreeGPUs: 8}, 100, 100, 0, 0},
		{"no number", DomainCandidate{Key: "s1/l4", Wanted: 1, Room: 1, Parts: 1, Fewest: 1}, 100, 100, 50, 50},
	} {
		c.domain.Scoring = DefaultScoring()
		c.domain.Scoring.History = history
		want := [4]float64{c.availability, c.alignment, c.utilization, c.history}
		weights := [4]float64{40, 30, 20, 10}
		score := 0.0
		for i, term := range domainTerms(&c.domain) {
			if term.Value != want[i] || term.Weight != weights[i] {
				t.Errorf("%s: %s is %v of weight %v, want %v of %v", c.name, term.Name, term.Value, term.Weight, want[i], weights[i])
			}
			score += want[i] * weights[i] / 100
		}
		if got := (TopologyAware{}).ScoreDomain(&c.domain); math.Abs(got-score) > 1e-9 {
			t.Errorf("%s: score %v, want %v", c.name, got, score)
		}
	}
}

// checkDomain returns what is wrong with the terms of a drawn domain, "" if nothing.
func checkDomain(t *rapid.T, terms func(*DomainCandidate) [4]Term) string {
	ints := rapid.SampledFrom([]int64{0, 1, 8, 64, math.MaxInt64, -1, math.MinInt64})
	c := DomainCandidate{
		Key:      "k",
		Wanted:   int(ints.Draw(t, "wanted")),
		Room:     int(ints.Draw(t, "room")),
		Parts:    int(ints.Draw(t, "parts")),
		Fewest:   int(ints.Draw(t, "fewest")),
		GPUs:     ints.Draw(t, "GPUs"),
		FreeGPUs: ints.Draw(t, "free"),
		Taking:   ints.Draw(t, "taking"),
		Scoring: &Scoring{
			Domain:  DomainWeights{odd(t, "availability"), odd(t, "alignment"), odd(t, "utilization"), odd(t, "history")},
			History: map[string]float64{"k": odd(t, "opinion")},
		},
	}
	all := terms(&c)
	for _, term := range all {
		if !(term.Value >= 0 && term.Value <= 100) {
			return fmt.Sprintf("%s is %v", term.Name, term.Value)
		}
	}
	if score := mean(all[:]); !(score >= 0 && score <= 100) {
		return fmt.Sprintf("the score is %v", score)
	}
	return ""
}

func TestDomainScoresAreNumbersInRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if problem := checkDomain(t, domainTerms); problem != "" {
			t.Fatal(problem)
		}
	})
}

// The property must be able to fail.
func TestDomainPropertyFindsMistakes(t *testing.T) {
	for name, value := range map[string]func(*DomainCandidate) float64{
		"does not cap the room": func(c *DomainCandidate) float64 { return 100 * float64(c.Room) / float64(max(1, c.Wanted)) },
		"divides by no GPUs":    func(c *DomainCandidate) float64 { return 100 * float64(c.Taking) / float64(c.GPUs) },
	} {
		t.Run(name, func(t *testing.T) {
			found := false
			rapid.Check(t, func(t *rapid.T) {
				found = found || checkDomain(t, func(c *DomainCandidate) [4]Term {
					terms := domainTerms(c)
					terms[0].Value = value(c)
					return terms
				}) != ""
			})
			if !found {
				t.Error("the property holds for a broken score")
			}
		})
	}
}
