// Command manager runs the controllers of gpu-orchestrator.
package main

import (
	"fmt"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/reyisjones/gpu-orchestrator/internal/manager"
)

func main() {
	if err := manager.NewCommand().ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "manager:", err)
		os.Exit(1)
	}
}
