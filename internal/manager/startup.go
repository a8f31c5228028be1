package manager

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

// waitForCluster waits until the API server answers and serves our kind, and says meanwhile
// what it waits for. An answer that waiting cannot mend ends it at once.
func waitForCluster(ctx context.Context, config *rest.Config, timeout time.Duration, log logr.Logger) error {
	config = rest.CopyConfig(config)
	config.Timeout = 5 * time.Second
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("setting up a client for %s: %w", config.Host, err)
	}
	var last error
	err = wait.PollUntilContextTimeout(ctx, time.Second, timeout, true, func(context.Context) (bool, error) {
		problem := serves(client)
		if problem == nil {
			return true, nil
		}
		if apierrors.IsUnauthorized(problem) || apierrors.IsForbidden(problem) {
			return false, fmt.Errorf("asking the API server %s: %w", config.Host, problem)
		}
		if last == nil || last.Error() != problem.Error() {
			log.Info("waiting for the cluster", "server", config.Host, "problem", problem.Error())
		}
		last = problem
		return false, nil
	})
	if err != nil && last != nil && wait.Interrupted(err) && ctx.Err() == nil {
		return fmt.Errorf("waited %s for the cluster at %s: %w", timeout, config.Host, last)
	}
	return err
}

func noCRD(kind string) error {
	return fmt.Errorf("the CRD of %s is not installed: install it with `make install` or `kubectl apply --server-side -k config/crd`", kind)
}

// serves tells what is missing for the API server to serve our kinds.
func serves(client discovery.DiscoveryInterface) error {
	list, err := client.ServerResourcesForGroupVersion(gpuv1alpha1.GroupVersion.String())
	switch {
	case apierrors.IsNotFound(err):
		return noCRD("GPUWorkload")
	case err != nil:
		return err
	}
	for _, kind := range []string{"GPUWorkload", "GPUNode", "PlacementPolicy"} {
		if !slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Kind == kind }) {
			return noCRD(kind)
		}
	}
	return nil
}

// ownLabel selects what carries the UID of a workload.
func ownLabel() labels.Selector {
	requirement, err := labels.NewRequirement(gpuv1alpha1.WorkloadUIDLabel, selection.Exists, nil)
	if err != nil {
		// The arguments are constants.
		panic(err)
	}
	return labels.NewSelector().Add(*requirement)
}
