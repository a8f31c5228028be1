package sim

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/reyisjones/gpu-orchestrator/core/gpu"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
	"github.com/reyisjones/gpu-orchestrator/internal/problem"
)

// The labels and resources that a scenario's meaning hangs on.
const (
	hostnameLabel = "kubernetes.io/hostname"
	gpuResource   = "nvidia.com/gpu"
	podsResource  = "pods"

	// Shares of GPUs: of the device plugin, and of HAMi, where nvidia.com/gpu counts slots.
	sharedResource = "nvidia.com/gpu.shared"
	coresResource  = "nvidia.com/gpucores"
)

// maxGPUs is the most GPUs of a node whose inside is described.
const maxGPUs = 64

// kebabCase is how scenarios are called.
var kebabCase = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// check notes everything in the scenario that contradicts itself or cannot be.
func (s *Scenario) check() {
	c := &checker{Scenario: s, nodes: map[string]*occupied{}, geometries: map[string]*gpu.Geometry{}}
	c.head()
	c.allNodes()
	c.allUplinks()
	c.allRunning()
	c.allScoring()
	c.policy()
	c.defragment()
	c.allExpected()
	if s.Expect == nil || !s.Expect.Invalid {
		c.request()
		return
	}
	// The scenario says that its request contradicts itself: how it does is the answer.
	kept, found := s.src.problems, problem.Problems{}
	s.src.problems = &found
	c.request()
	s.src.problems = kept
	if len(found) > 0 {
		s.Contradiction = strings.TrimPrefix(found[0].Path, s.src.prefix.String()+".") + ": " + found[0].Text
	}
}

// checker is one pass over a scenario.
type checker struct {
	*Scenario
	nodes map[string]*occupied
	// geometries are those of the products seen so far.
	geometries map[string]*gpu.Geometry
}

// occupied is a node with what the pods checked so far take of it.
type occupied struct {
	*Node
	sum Amounts
	// gpus is the number of GPUs; free are the thousandths left of each.
	free []int
}

func (c *checker) bad(p path, format string, args ...any) {
	c.src.bad(p, fmt.Sprintf(format, args...))
}

// oneOf notes a problem if the value is not among those there are.
func (c *checker) oneOf(p path, value string, known ...string) bool {
	if slices.Contains(known, value) {
		return true
	}
	c.bad(p, "is %q; expected one of %s", value, strings.Join(slices.DeleteFunc(known, func(s string) bool { return s == "" }), ", "))
	return false
}

// named notes a problem if the name is missing or was seen before.
func (c *checker) named(p path, name, what string, seen map[string]bool) {
	switch {
	case name == "":
		c.bad(p, "is missing; expected the name of the %s", what)
	case seen[name]:
		c.bad(p, "%q is the name of an earlier %s, too; expected a name of its own", name, what)
	}
	seen[name] = true
}

func (c *checker) atLeast(p path, value, least int64) bool {
	if value < least {
		c.bad(p, "is %d; expected at least %d", value, least)
		return false
	}
	if value > mostOfAnything {
		c.bad(p, "is %d; expected up to %d", value, mostOfAnything)
		return false
	}
	return true
}

func (c *checker) head() {
	switch {
	case c.Name == "":
		c.bad(path{"name"}, "is missing; expected a name in kebab-case, such as gang-in-one-rack")
	case !kebabCase.MatchString(c.Name):
		c.bad(path{"name"}, "is %q; expected kebab-case, such as gang-in-one-rack", c.Name)
	}
	seen := map[string]bool{}
	for i, l := range c.Levels {
		c.named(path{"levels", i}, l, "level", seen)
	}
}

// level notes a problem if there is no such level, and returns its index, -1 for none.
func (c *checker) level(p path, name string) int {
	i := slices.Index(c.Levels, name)
	if i < 0 {
		if len(c.Levels) == 0 {
			c.bad(p, "is %q, but the scenario has no levels; expected levels, widest first", name)
		} else {
			c.bad(p, "%q is none of the levels; expected one of %s", name, strings.Join(c.Levels, ", "))
		}
	}
	return i
}

// topology checks a pair of levels, each of which may be absent.
func (c *checker) topology(p path, required, preferred string) {
	if required != "" {
		c.level(p.with("required"), required)
	}
	if preferred != "" {
		c.level(p.with("preferred"), preferred)
	}
	c.inward(p.with("preferred"), required, preferred)
}

// inward notes a problem if the preferred level is wider than the required one, which it can
// add nothing to.
func (c *checker) inward(p path, required, preferred string) {
	if outer, inner := slices.Index(c.Levels, required), slices.Index(c.Levels, preferred); inner >= 0 && inner < outer {
		c.bad(p, "%s is wider than the required level, %s; expected one inside it", preferred, required)
	}
}

func (c *checker) allUplinks() {
	seen := map[string]bool{}
	for i, u := range c.Uplinks {
		p := path{"uplinks", i}
		c.atLeast(p.with("mbps"), u.Mbps, 0)
		l := c.level(p.with("level"), u.Level)
		if l < 0 {
			continue
		}
		values := strings.Split(u.Domain, "/")
		if len(values) != l+1 {
			c.bad(p.with("domain"), "%q has %s; expected %d, one for each level down to %s, joined by /", u.Domain, counted(len(values), "value"), l+1, u.Level)
			continue
		}
		if !slices.ContainsFunc(c.Nodes, func(n Node) bool { return slices.Equal(domainPath(c.Levels[:l+1], n.Labels), values) }) {
			c.bad(p.with("domain"), "%q has no node; expected a domain of %s", u.Domain, u.Level)
		}
		key := fmt.Sprint(l, " ", u.Domain)
		if seen[key] {
			c.bad(p, "is the uplink of %s for a second time; expected one", u.Domain)
		}
		seen[key] = true
	}
}

// domainPath returns the values of the levels as far as every one of them is there: what lacks
// a level is in no domain of it, and in none inside it.
func domainPath(levels []string, labels map[string]string) []string {
	var values []string
	for _, l := range levels {
		v := strings.TrimSpace(labels[l])
		if v == "" {
			break
		}
		values = append(values, v)
	}
	return values
}

func (c *checker) allScoring() {
	if c.Scoring == nil {
		return
	}
	p := path{"scoring"}
	if w := c.Scoring.Node; w != nil {
		c.weights(p.with("node"), w.Topology, w.Resources, w.Balance, w.Hint)
	}
	if w := c.Scoring.Domain; w != nil {
		c.weights(p.with("domain"), w.Availability, w.Alignment, w.Utilization, w.History)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Scoring.History)) {
		c.percent(p.with("history", name), c.Scoring.History[name])
	}
	for _, name := range slices.Sorted(maps.Keys(c.Scoring.Hint)) {
		c.percent(p.with("hint", name), c.Scoring.Hint[name])
		if c.nodes[name] == nil {
			c.bad(p.with("hint", name), "is the hint for a node that is not there; expected the name of one of the nodes")
		}
	}
	for i, e := range c.Scoring.Mix {
		m := p.with("mix", i)
		c.weights(m.with("weight"), e.Weight)
		c.atLeast(m.with("gpus"), int64(e.GPUs), 0)
		c.milli(m.with("gpuMilli"), e.GPUMilli)
		if e.GPUs > 0 && e.GPUMilli > 0 {
			c.bad(m, "has whole GPUs and a share of one; expected one of the two")
		}
	}
}

// weights notes a problem if one is negative or all are zero.
func (c *checker) weights(p path, weights ...float64) {
	const most = 1e6
	sum := 0.0
	for _, w := range weights {
		if w < 0 || w > most {
			c.bad(p, "has the weight %g; expected 0 to %g", w, most)
			return
		}
		sum += w
	}
	if sum == 0 {
		c.bad(p, "has no weight above zero; expected at least one")
	}
}

func (c *checker) percent(p path, value float64) {
	if value < 0 || value > 100 {
		c.bad(p, "is %g; expected 0 to 100", value)
	}
}

// milli checks a share of a GPU, 0 for none.
func (c *checker) milli(p path, value int) {
	if value < 0 || value > 1000 {
		c.bad(p, "is %d; expected 1 to 1000 thousandths of one GPU", value)
	}
}

// strategies are the names that a request may choose from.
func strategies() []string {
	var names []string
	for _, s := range placement.Builtin() {
		names = append(names, s.Name())
	}
	return names
}
