package manager

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/internal/aggregated"
	"github.com/reyisjones/gpu-orchestrator/internal/controller"
	"github.com/reyisjones/gpu-orchestrator/internal/decisions"
	"github.com/reyisjones/gpu-orchestrator/internal/explaining"
	"github.com/reyisjones/gpu-orchestrator/internal/state"
)

// addExplanations serves group explain.gpu.warp.dev on every replica.
func addExplanations(mgr ctrl.Manager, config *Config, world *state.State, decided *decisions.Log, synced func() bool) error {
	elected := mgr.Elected()
	explainer := explaining.New(explaining.Parts{
		Cache:     mgr.GetClient(),
		State:     world,
		Decisions: decided,
		PodOf: func(w *gpuv1alpha1.GPUWorkload) (*corev1.Pod, error) {
			return controller.PodOf(w, config.DefaultImage)
		},
		ClassName: config.ClassName,
		Clock:     clock.RealClock{},
		Leads: func() bool {
			select {
			case <-elected:
				return true
			default:
				return false
			}
		},
	})
	server := aggregated.New(aggregated.Config{Address: config.APIAddress, CertDir: config.APICertDir},
		mgr.GetConfig(), explainer, synced, ctrl.Log.WithName("explanations"))
	if err := mgr.Add(server); err != nil {
		return fmt.Errorf("adding the server of explanations: %w", err)
	}
	return nil
}
