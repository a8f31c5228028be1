// Package demo shows the product at work: it submits a few GPU workloads and tells
// what becomes of them, as it happens.
package demo

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/internal/sandbox/console"
)

const (
	// namespace is where people look first.
	namespace = metav1.NamespaceDefault
	// patience is several times what the workloads take.
	patience = time.Minute
)

// manifests are the workloads, as a user would write them.
//
//go:embed workloads.yaml
var manifests []byte

// Size is what the demonstration may count on.
type Size struct {
	Nodes       int
	GPUsPerNode int
}

// Run submits the workloads and returns when all have finished. The error says how
// many did not succeed.
func Run(ctx context.Context, config *rest.Config, size Size, out *console.Console) error {
	started := time.Now()
	workloads, err := Workloads(size)
	if err != nil {
		return err
	}
	cluster, err := connect(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()

	out.Printf("%s", out.Paint(console.Bold, fmt.Sprintf("Demo: %d GPU workloads", len(workloads))))
	for _, w := range workloads {
		if err := cluster.Create(ctx, w); err != nil {
			return fmt.Errorf("submitting %s: %w", w.Name, err)
		}
	}
	story := newStory(workloads, started, out)
	// Whatever ended the watch, the table tells how far the workloads came.
	watchErr := story.follow(ctx, cluster)
	return story.conclude(watchErr)
}

func connect(config *rest.Config) (client.WithWatch, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), eventsv1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("registering the kinds: %w", err)
	}
	cluster, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connecting to the API server: %w", err)
	}
	return cluster, nil
}

// Workloads are those of the manifest, cut down to what a cluster of this size can
// hold at once.
func Workloads(size Size) ([]*v1alpha1.GPUWorkload, error) {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), len(manifests))
	var workloads []*v1alpha1.GPUWorkload
	for {
		w := &v1alpha1.GPUWorkload{}
		err := decoder.Decode(w)
		if errors.Is(err, io.EOF) {
			return workloads, nil
		}
		if err != nil {
			return nil, fmt.Errorf("decoding the workloads: %w", err)
		}
		w.Namespace = namespace
		w.Spec.GPUCount = min(w.Spec.GPUCount, int32(size.GPUsPerNode))
		w.Spec.Parallelism = max(1, min(w.Spec.Parallelism, int32(size.Nodes)))
		workloads = append(workloads, w)
	}
}
