package sim

import (
	"fmt"
	"reflect"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

// Duration is written as Go does it: 90s, 45m, 2h30m.
type Duration time.Duration

// longestRun bounds every duration, so that their sums are in range.
const longestRun = 10 * 365 * 24 * time.Hour

func (t *Duration) read(d decoder, n *yaml.Node, p path) {
	if !d.is(n, yaml.ScalarNode, p) {
		return
	}
	const expected = "expected a duration such as 45m or 2h30m"
	v, err := time.ParseDuration(n.Value)
	switch {
	case err != nil:
		d.src.bad(p, fmt.Sprintf("is %s; %s", shown(n), expected))
	case v < 0 || v > longestRun:
		d.src.bad(p, fmt.Sprintf("is %s; %s, up to ten years", shown(n), expected))
	default:
		*t = Duration(v)
	}
}

// Runtime is how long something runs, from its start to its end. It is written as one duration,
// or as quantiles.
type Runtime struct {
	P50 Duration `yaml:"p50"`
	P90 Duration `yaml:"p90"`
}

func (r *Runtime) read(d decoder, n *yaml.Node, p path) {
	if n.Kind == yaml.ScalarNode {
		d.value(n, reflect.ValueOf(&r.P50).Elem(), p)
		r.P90 = r.P50
		return
	}
	d.fields(n, reflect.ValueOf(r).Elem(), p)
}

// estimate is what the engine takes; nothing is known of nil.
func (r *Runtime) estimate() placement.Estimate {
	if r == nil {
		return placement.Estimate{}
	}
	return placement.Estimate{P50: time.Duration(r.P50), P90: time.Duration(r.P90)}
}

func (c *checker) runtime(p path, r *Runtime) {
	switch {
	case r == nil:
	case r.P50 == 0 && r.P90 == 0:
		c.bad(p, "is 0; expected how long it runs, or nothing if that is not known")
	case r.P90 > 0 && r.P90 < r.P50:
		c.bad(p.with("p90"), "is %s, but p50 is %s; expected no less", time.Duration(r.P90), time.Duration(r.P50))
	}
}
