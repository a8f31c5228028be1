package applet

import (
	"fmt"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/reyisjones/gpu-orchestrator/internal/extender"
)

func runExtender() int {
	ForgetGlobalFlags()
	if err := extender.NewCommand().ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "extender:", err)
		return 1
	}
	return 0
}
