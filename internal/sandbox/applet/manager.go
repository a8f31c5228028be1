package applet

import (
	"fmt"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/reyisjones/gpu-orchestrator/internal/manager"
)

func runManager() int {
	ForgetGlobalFlags()
	if err := manager.NewCommand().ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "manager:", err)
		return 1
	}
	return 0
}
