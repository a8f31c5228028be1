package placement

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// Apply returns the request with the change made. It refuses a change that names what the
// request or the snapshot does not have.
func (c Change) Apply(s *cluster.Snapshot, r *Request) (*Request, error) {
	edited := *r
	edited.Groups = slices.Clone(r.Groups)
	edited.Sets = slices.Clone(r.Sets)
	if c.Field == "sets.required" {
		level, err := c.level(s)
		if err != nil {
			return nil, err
		}
		for i := range edited.Sets {
			names := make([]string, 0, len(edited.Sets[i].Groups))
			for _, g := range edited.Sets[i].Groups {
				names = append(names, edited.Groups[g].Name)
			}
			if strings.Join(names, "+") == c.Group {
				edited.Sets[i].Topology.Required = level
				return &edited, nil
			}
		}
		return nil, fmt.Errorf("changing %s: no set of the groups %s", c.Field, c.Group)
	}
	i := slices.IndexFunc(edited.Groups, func(g Group) bool { return g.Name == c.Group })
	switch {
	case i >= 0:
	case c.Group == "" && len(edited.Groups) == 1:
		i = 0
	default:
		return nil, fmt.Errorf("changing %s: no group %q", c.Field, c.Group)
	}
	return &edited, c.applyTo(s, &edited.Groups[i])
}

func (c Change) applyTo(s *cluster.Snapshot, g *Group) error {
	switch c.Field {
	case "topology.required":
		level, err := c.level(s)
		if err != nil {
			return err
		}
		g.Topology.Required = level
		return nil
	case "slices":
		g.Slices = nil
		return nil
	}
	n, err := strconv.ParseInt(c.To, 10, 64)
	if err != nil {
		return fmt.Errorf("changing %s to %q: %w", c.Field, c.To, err)
	}
	switch c.Field {
	case "bandwidth":
		g.Mbps = n
	case "count":
		g.Count, g.MinCount = int(n), 0
	case "gpus":
		setGPUs(g, n)
	default:
		return fmt.Errorf("changing %q: there is no such field", c.Field)
	}
	return nil
}

func (c Change) level(s *cluster.Snapshot) (int, error) {
	if c.To == "none" {
		return AnyLevel, nil
	}
	level, ok := s.Level(c.To)
	if !ok {
		return 0, fmt.Errorf("changing %s: there is no level %q", c.Field, c.To)
	}
	return level, nil
}
