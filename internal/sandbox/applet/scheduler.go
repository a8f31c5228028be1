package applet

import (
	"k8s.io/component-base/cli"

	"github.com/reyisjones/gpu-orchestrator/internal/scheduler"
)

func runScheduler() int { return cli.Run(scheduler.NewCommand()) }
