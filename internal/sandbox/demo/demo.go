// Package demo shows the product at work.
package demo

import (
	"context"
	"time"

	"github.com/reyisjones/gpu-orchestrator/internal/sandbox/console"
)

// Run is the demonstration.
func Run(ctx context.Context, kubeconfig string, started time.Time, out *console.Console) error {
	return nil
}
