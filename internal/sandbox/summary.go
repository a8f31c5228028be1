package sandbox

import (
	"fmt"
	"time"

	"github.com/reyisjones/gpu-orchestrator/internal/sandbox/console"
)

// summary tells where everything is.
func (s *Sandbox) summary() {
	c := s.console
	line := func(name, value string) { c.Printf("  %s %s", c.Paint(console.Dim, fmt.Sprintf("%-12s", name)), value) }

	c.Printf("\n%s", c.Paint(console.Bold, fmt.Sprintf("The sandbox is ready in %s", console.Seconds(time.Since(s.started)))))
	line("nodes", fmt.Sprintf("%d (%s)", s.Nodes, s.Profile.Description))
	line("API server", s.plane.URL())
	line("kubeconfig", s.plane.Kubeconfig())
	if s.Manager {
		line("metrics", s.plane.ManagerMetricsURL())
		line("health", s.plane.ManagerHealthURL())
	}
	if s.Extender {
		line("extender", s.plane.ExtenderURL())
	}
	if !s.Manager {
		line("manager's", s.plane.ManagerKubeconfig())
	}
	line("logs", s.plane.Logs())
	line("use it", c.Paint(console.Cyan, "export KUBECONFIG="+s.plane.Kubeconfig()))
	line("", c.Paint(console.Cyan, s.Program+" kubectl get nodes -L nvidia.com/gpu.product,gpu.warp.dev/leaf"))
	line("", c.Paint(console.Cyan, s.Program+" kubectl explain gpuworkload.spec"))
	line("end it", "Ctrl-C here, or "+c.Paint(console.Cyan, s.downCommand()))
	c.Printf("")
}

// downCommand names the folder where it is not the one that is looked in first.
func (s *Sandbox) downCommand() string {
	if s.DefaultDir {
		return s.Program + " down"
	}
	return s.Program + " down --dir " + s.Dir
}
