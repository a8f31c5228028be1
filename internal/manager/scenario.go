package manager

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/internal/controller"
	"github.com/reyisjones/gpu-orchestrator/internal/sim/capture"
	"github.com/reyisjones/gpu-orchestrator/internal/state"
)

// scenarioPath is where the question about a workload is told as a scenario file.
const scenarioPath = "/debug/scenario"

// scenarios answers GET /debug/scenario?workload=NAMESPACE/NAME.
type scenarios struct {
	state        *state.State
	defaultImage string
	// synced tells whether the state is complete: before, it would tell of a smaller cluster.
	synced func() bool
	clock  clock.PassiveClock
	get    func(ctx context.Context, key types.NamespacedName) (*gpuv1alpha1.GPUWorkload, error)
}

// addScenarios serves scenarios beside the metrics. The probes' server is not for it: kubelets
// of all nodes must reach that one, and what is told here names every workload of the cluster.
func addScenarios(mgr ctrl.Manager, s *state.State, defaultImage string, synced func() bool) error {
	handler := &scenarios{state: s, defaultImage: defaultImage, synced: synced, clock: clock.RealClock{},
		get: func(ctx context.Context, key types.NamespacedName) (*gpuv1alpha1.GPUWorkload, error) {
			var w gpuv1alpha1.GPUWorkload
			return &w, mgr.GetClient().Get(ctx, key, &w)
		},
	}
	if err := mgr.AddMetricsServerExtraHandler(scenarioPath, handler); err != nil {
		return fmt.Errorf("serving %s: %w", scenarioPath, err)
	}
	return nil
}

// ServeHTTP implements http.Handler.
func (h *scenarios) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		http.Error(w, "only GET is served", http.StatusMethodNotAllowed)
		return
	}
	name := r.URL.Query().Get("workload")
	namespace, own, ok := strings.Cut(name, "/")
	if !ok || namespace == "" || own == "" {
		http.Error(w, "say of which workload: "+scenarioPath+"?workload=NAMESPACE/NAME", http.StatusBadRequest)
		return
	}
	if !h.synced() {
		http.Error(w, "nodes and pods have not been read completely yet", http.StatusServiceUnavailable)
		return
	}
	text, err := h.scenario(r.Context(), types.NamespacedName{Namespace: namespace, Name: own})
	var invalid *state.InvalidError
	switch {
	case apierrors.IsNotFound(err):
		http.Error(w, "there is no GPUWorkload "+name, http.StatusNotFound)
	case errors.As(err, &invalid):
		http.Error(w, "nothing can be asked about "+name+": "+err.Error(), http.StatusUnprocessableEntity)
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	default:
		w.Header().Set("Content-Type", "application/yaml")
		// Whoever hangs up does not want the rest.
		_, _ = w.Write(text)
	}
}

// asked is the time at which it is asked about a workload that waits. One that has its places has
// them whatever is held for others by now.
func (h *scenarios) asked(w *gpuv1alpha1.GPUWorkload) time.Time {
	if len(w.Status.Placement) > 0 {
		return time.Time{}
	}
	return h.clock.Now()
}

func (h *scenarios) scenario(ctx context.Context, key types.NamespacedName) ([]byte, error) {
	w, err := h.get(ctx, key)
	if err != nil {
		return nil, err
	}
	pod, err := controller.PodOf(w, h.defaultImage)
	if err != nil {
		return nil, err
	}
	snapshot, request, err := h.state.Question(w, pod, h.asked(w))
	if err != nil {
		return nil, err
	}
	return capture.Weighed("a live cluster, "+scenarioPath, snapshot, request, h.state.Weights(w))
}
