package scheduler

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/reyisjones/gpu-orchestrator/internal/state"
)

// Args are the plugin's settings in a KubeSchedulerConfiguration. All profiles of a scheduler
// have the same.
type Args struct {
	metav1.TypeMeta `json:",inline"`
	// TopologyLevels are the levels of the network and of the machines, outermost first.
	TopologyLevels []state.TopologyLevel `json:"topologyLevels,omitempty"`
	// PermitTimeout is how long members of a gang that have their node wait for the others; then
	// all of them give back what they hold.
	PermitTimeout metav1.Duration `json:"permitTimeout,omitempty"`
	// TellAfter is how long a gang may be without all of its pods before its pods say so.
	TellAfter metav1.Duration `json:"tellAfter,omitempty"`
	// AvoidNodeFor is how long a node that refused a pod of a gang for something that plans do
	// not see is left out of the gang's plans.
	AvoidNodeFor metav1.Duration `json:"avoidNodeFor,omitempty"`
	// Preemption allows GPU pods and gangs to evict pods of lower priority.
	Preemption *bool `json:"preemption,omitempty"`
}

// defaultArgs returns the settings of a configuration that sets nothing.
func defaultArgs() Args {
	preempts := true
	return Args{
		PermitTimeout: metav1.Duration{Duration: time.Minute},
		TellAfter:     metav1.Duration{Duration: 3 * time.Second},
		AvoidNodeFor:  metav1.Duration{Duration: 2 * time.Minute},
		Preemption:    &preempts,
	}
}

// decodeArgs reads what the configuration says of the plugin over the defaults. Unknown keys are
// refused: a misspelt one would otherwise silently do nothing.
func decodeArgs(obj runtime.Object) (Args, error) {
	args := defaultArgs()
	switch o := obj.(type) {
	case nil:
	case *runtime.Unknown:
		if err := yaml.UnmarshalStrict(o.Raw, &args); err != nil {
			return args, fmt.Errorf("reading pluginConfig of %s: %w", Name, err)
		}
	default:
		return args, fmt.Errorf("reading pluginConfig of %s: args are a %T, want a mapping of settings", Name, obj)
	}
	if args.TopologyLevels == nil {
		args.TopologyLevels = state.DefaultLevels()
	}
	return args, args.validate()
}

func (a *Args) validate() error {
	errs := state.ValidateLevels(field.NewPath("topologyLevels"), a.TopologyLevels)
	for path, d := range map[string]metav1.Duration{
		"permitTimeout": a.PermitTimeout, "tellAfter": a.TellAfter, "avoidNodeFor": a.AvoidNodeFor,
	} {
		if d.Duration <= 0 {
			errs = append(errs, field.Invalid(field.NewPath(path), d.Duration.String(), "must be more than 0"))
		}
	}
	if err := errs.ToAggregate(); err != nil {
		return fmt.Errorf("checking pluginConfig of %s: %w", Name, err)
	}
	return nil
}
