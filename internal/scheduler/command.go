package scheduler

import (
	"github.com/spf13/cobra"
	_ "k8s.io/component-base/logs/json/register" // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
)

// NewCommand returns kube-scheduler with the plugin in it: the flags and the configuration file are
// those of kube-scheduler.
func NewCommand() *cobra.Command {
	cmd := app.NewSchedulerCommand(app.WithPlugin(Name, NewFactory()))
	cmd.Use = "scheduler"
	cmd.Short = "Schedule pods, those with GPUs and gangs by the engine of gpu-orchestrator"
	cmd.Long = `scheduler is kube-scheduler with the plugin ` + Name + `, which places pods that ask for
GPUs, and gangs of them. It takes the flags and the configuration file of kube-scheduler;
docs/scheduler.md tells what to write there.`
	return cmd
}
