package telemetry

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

// kind is a kind of GPU as the metrics tell them apart.
type kind struct{ resource, product string }

// amounts are physical GPUs: a GPU that is lent to several pods counts once, a MIG instance as
// the share of compute that its profile has.
type amounts struct {
	total, used float64
	// idle and unusable are of nodes in service, and of resources that stand for whole GPUs.
	idle, unusable float64
}

func (a *amounts) add(b amounts) {
	a.total += b.total
	a.used += b.used
	a.idle += b.idle
	a.unusable += b.unusable
}

// inUse is the share in use, 0 of nothing. It is above 1 where more is held than is there.
func (a *amounts) inUse() float64 {
	if a.total <= 0 {
		return 0
	}
	return a.used / a.total
}

// fragmented is the share of what is idle that the expected work cannot use, 0 if nothing is.
func (a *amounts) fragmented() float64 {
	if a.idle <= 0 {
		return 0
	}
	return a.unusable / a.idle
}

// gpuResource is a resource of a snapshot that stands for GPUs.
type gpuResource struct {
	index int
	name  string
	// share is the part of a GPU that a unit is, where the node does not lend its GPUs.
	share float64
	// whole says that a unit is a GPU, or one of the replicas that a GPU is lent out as.
	whole bool
}

const (
	migPrefix    = "nvidia.com/mig-"
	sharedSuffix = ".shared"
	// migSlices is how many compute slices MIG cuts a GPU into, on every model that has seven.
	migSlices = 7
)

// gpuResources finds the resources that stand for GPUs. Others of the same vendors, such as
// gpu.intel.com/millicores, are second counts of the same devices.
func gpuResources(resources *cluster.Resources) []gpuResource {
	var found []gpuResource
	for i := range resources.Len() {
		name := resources.Name(i)
		if !resources.Extended(i) {
			continue
		}
		if profile, ok := strings.CutPrefix(name, migPrefix); ok {
			if c := profile[:min(1, len(profile))]; c >= "1" && c <= "7" {
				found = append(found, gpuResource{index: i, name: name, share: float64(c[0]-'0') / migSlices})
			}
			continue
		}
		_, what, _ := strings.Cut(strings.TrimSuffix(name, sharedSuffix), "/")
		if what == "gpu" || name == "gpu.intel.com/i915" || name == "gpu.intel.com/xe" {
			found = append(found, gpuResource{index: i, name: name, share: 1, whole: true})
		}
	}
	return found
}

// whole tells whether the units of a resource that stands for GPUs are whole ones.
func whole(name string) bool { return !strings.HasPrefix(name, migPrefix) }

// of counts the node's GPUs of the resource.
func (g *gpuResource) of(n *cluster.Node, scoring *placement.Scoring) amounts {
	share := g.share
	if n.GPU.Replicas > 1 && (g.whole || strings.HasSuffix(g.name, sharedSuffix)) {
		share /= float64(n.GPU.Replicas)
	}
	a := amounts{
		total: float64(n.Allocatable.At(g.index)) * share,
		used:  float64(n.Used.At(g.index)) * share,
	}
	if g.whole && n.Ready && !n.Cordoned && a.total > 0 {
		a.idle, a.unusable = placement.Fragmentation(n, g.index, scoring)
	}
	return a
}

// census is what the gauges show of one snapshot.
type census struct {
	kinds map[kind]*amounts
	// levels are, by name, the domains of the levels that are shown.
	levels map[string][]domain
	// counts is how many domains each of these levels has, shown or not.
	counts map[string]int
}

// domain is a domain as it is shown.
type domain struct {
	name string
	amounts
}

// Others is the domain, and the product, that stands for all that are beyond the limit.
const Others = "others"

// take counts a snapshot. It looks at every node once.
func take(s *cluster.Snapshot, levels []string, limit int, scoring *placement.Scoring) census {
	c := census{kinds: map[kind]*amounts{}, levels: map[string][]domain{}, counts: map[string]int{}}
	resources := gpuResources(s.Resources)
	perNode := make([]amounts, s.Len())
	for i, n := range s.Nodes() {
		for k := range resources {
			a := resources[k].of(n, scoring)
			if a.total <= 0 && a.used <= 0 {
				continue
			}
			perNode[i].add(a)
			c.kind(kind{resources[k].name, n.GPU.Product}, limit).add(a)
		}
	}
	for _, name := range levels {
		level, ok := s.Level(name)
		if !ok {
			continue
		}
		all := s.Domains(level)
		if len(all) == 0 {
			continue
		}
		c.counts[name] = len(all)
		c.levels[name] = domainsOf(s, all, perNode, limit)
	}
	return c
}

// kind returns where a kind is counted. Products are labels of nodes, which anybody who runs a
// node may write: their number is limited as that of domains is.
func (c *census) kind(k kind, limit int) *amounts {
	a, ok := c.kinds[k]
	if !ok && len(c.kinds) >= limit {
		k.product = Others
		a, ok = c.kinds[k]
	}
	if !ok {
		a = &amounts{}
		c.kinds[k] = a
	}
	return a
}

func (c *census) sortedKinds() []kind {
	return slices.SortedFunc(maps.Keys(c.kinds), func(a, b kind) int {
		return cmp.Or(cmp.Compare(a.resource, b.resource), cmp.Compare(a.product, b.product))
	})
}

// domainsOf counts the domains of one level: the first in topology order by themselves, all that
// are beyond the limit as one.
func domainsOf(s *cluster.Snapshot, all []cluster.Domain, perNode []amounts, limit int) []domain {
	names := namesOf(s, all)
	shown := make([]domain, 0, min(len(all), limit+1))
	for d := range all {
		if d < limit {
			shown = append(shown, domain{name: names[d]})
		} else if d == limit {
			shown = append(shown, domain{name: Others})
		}
		into := &shown[len(shown)-1]
		for i := all[d].First; i < all[d].End; i++ {
			into.add(perNode[i])
		}
	}
	return shown
}

// namesOf names domains by their own value, and where two of the level have the same one, as
// "rack-1" of every room, by all values from the outermost level to theirs. Two series of one
// name would make Prometheus refuse the whole scrape.
func namesOf(s *cluster.Snapshot, all []cluster.Domain) []string {
	// A domain that is called as the rest is gets its whole path, too.
	count := map[string]int{Others: 1}
	for _, d := range all {
		count[s.DomainName(d)]++
	}
	names := make([]string, len(all))
	for i, d := range all {
		names[i] = s.DomainName(d)
		if count[names[i]] > 1 {
			names[i] = strings.Join(s.At(d.First).Path[:d.Level+1], "/")
		}
	}
	return names
}
