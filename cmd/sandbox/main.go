// Command sandbox is a Kubernetes cluster with simulated GPU nodes on one machine,
// and each program of that cluster.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/reyisjones/gpu-orchestrator/internal/sandbox/applet"
	"github.com/reyisjones/gpu-orchestrator/internal/sandbox/command"
)

func main() {
	applet.TellVersion()
	if run, ok := applet.Lookup(os.Args); ok {
		os.Exit(run())
	}
	applet.ForgetGlobalFlags()
	if err := command.New(applet.Names()).ExecuteContext(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "sandbox:", err)
		os.Exit(1)
	}
}
