// Command scheduler is kube-scheduler with the placement engine of gpu-orchestrator in it.
package main

import (
	"os"

	"k8s.io/component-base/cli"

	"github.com/reyisjones/gpu-orchestrator/internal/scheduler"
)

func main() {
	os.Exit(cli.Run(scheduler.NewCommand()))
}
