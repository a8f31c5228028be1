// Command scheduler is kube-scheduler with the placement engine of gpu-orchestrator in it, or, with
// --extender, what a stock kube-scheduler asks over HTTP.
package main

import (
	"fmt"
	"os"

	"k8s.io/component-base/cli"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/reyisjones/gpu-orchestrator/internal/extender"
	"github.com/reyisjones/gpu-orchestrator/internal/scheduler"
)

func main() {
	if !extender.Asked(os.Args[1:]) {
		os.Exit(cli.Run(scheduler.NewCommand()))
	}
	if err := extender.NewCommand().ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "scheduler --extender:", err)
		os.Exit(1)
	}
}
