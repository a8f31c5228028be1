package scheduler

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	corelisters "k8s.io/client-go/listers/core/v1"
	policylisters "k8s.io/client-go/listers/policy/v1"
	schedulinglisters "k8s.io/client-go/listers/scheduling/v1alpha2"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/utils/clock"

	"github.com/reyisjones/gpu-orchestrator/core/placement"
	"github.com/reyisjones/gpu-orchestrator/internal/state"
	"github.com/reyisjones/gpu-orchestrator/internal/telemetry"
)

// desk is what the plugins of all profiles share: the state of the cluster, and who is planned,
// refused and waiting.
//
// Its lock is never held while something of the scheduling queue is called: the queue calls
// PreEnqueue with its own lock held.
type desk struct {
	args   Args
	state  *state.State
	handle fwk.Handle
	clock  clock.WithTicker
	// metrics count decisions, gangs and evictions.
	metrics *telemetry.Placement
	// fed tells whether State has taken in all that was there at the start.
	fed func() bool
	// done is closed when the scheduler ends.
	done <-chan struct{}
	// news is signalled when there may be more room than before.
	news chan struct{}

	mu     sync.Mutex
	roster roster
	// alone are the GPU pods without a gang that were refused, by UID.
	alone map[types.UID]*alone
	// groups are the PodGroups that were refused, by name.
	groups map[types.NamespacedName]*group
	// podGroups lists PodGroups, nil where the cluster serves none.
	podGroups schedulinglisters.PodGroupLister
	pods      corelisters.PodLister
	budgets   policylisters.PodDisruptionBudgetLister
}

// alone is a pod without a gang that the engine or another plugin refused.
type alone struct {
	pod *corev1.Pod
	ask state.PodGang
	// refused says that the engine had no room for it.
	refused bool
	// yielded says that other plugins refused the engine's choice for something that plans do not
	// see: the stock plugins choose.
	yielded bool
	misses  int
	// node is held for it while victims end.
	node    string
	victims victims
}

func newDesk(ctx context.Context, args Args, handle fwk.Handle) (*desk, error) {
	strategies, err := placement.NewRegistry(placement.Builtin()...)
	if err != nil {
		return nil, fmt.Errorf("registering strategies: %w", err)
	}
	metrics, err := newMetrics()
	if err != nil {
		return nil, err
	}
	d := &desk{
		args:    args,
		state:   state.New(state.Levels(args.TopologyLevels), strategies),
		handle:  handle,
		clock:   clock.RealClock{},
		metrics: metrics,
		done:    ctx.Done(),
		news:    make(chan struct{}, 1),
		roster:  newRoster(),
		alone:   map[types.UID]*alone{},
		groups:  map[types.NamespacedName]*group{},
	}
	d.state.JudgePodsAlone()
	d.pods = handle.SharedInformerFactory().Core().V1().Pods().Lister()
	d.budgets = handle.SharedInformerFactory().Policy().V1().PodDisruptionBudgets().Lister()
	fed, err := d.feed(ctx, handle.SharedInformerFactory())
	if err != nil {
		return nil, err
	}
	inside, err := d.feedInventories(ctx, handle.KubeConfig())
	if err != nil {
		return nil, err
	}
	d.fed = func() bool { return fed() && inside() }
	if utilfeature.DefaultFeatureGate.Enabled(features.GenericWorkload) {
		groups := handle.SharedInformerFactory().Scheduling().V1alpha2().PodGroups()
		d.podGroups = groups.Lister()
		if err := d.feedGroups(groups.Informer()); err != nil {
			return nil, err
		}
	}
	go d.wakeUntil(ctx)
	return d, nil
}

// activate moves pods into the queue of those that are tried next, after the given time. It
// returns at once: the queue may be waiting for the caller.
func (d *desk) activate(after time.Duration, pods ...*corev1.Pod) {
	if len(pods) == 0 {
		return
	}
	byName := make(map[string]*corev1.Pod, len(pods))
	for _, pod := range pods {
		byName[pod.Namespace+"/"+pod.Name] = pod
	}
	go func() {
		if after > 0 {
			select {
			case <-d.done:
				return
			case <-d.clock.After(after):
			}
		}
		d.handle.Activate(klog.Background(), byName)
	}()
}

// tidings says that there may be more room than before.
func (d *desk) tidings() {
	select {
	case d.news <- struct{}{}:
	default:
	}
}
