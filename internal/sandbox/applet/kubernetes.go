package applet

import (
	"os"
	_ "time/tzdata" // time zones of CronJobs on machines without a zone database

	"go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // kubectl against other clusters
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectlcmd "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func etcd() int {
	etcdmain.Main(os.Args)
	return 0
}

func kubeAPIServer() int {
	return cli.Run(apiserver.NewAPIServerCommand())
}

func kubeControllerManager() int {
	return cli.Run(controllermanager.NewControllerManagerCommand())
}

func kubeScheduler() int {
	return cli.Run(scheduler.NewSchedulerCommand())
}

func kubectl() int {
	// kubectl logs while it builds its command (plugins, preferences), so its
	// own main reads the verbosity before anything else.
	_, _ = logs.GlogSetter(kubectlcmd.GetLogVerbosity(os.Args))
	if err := cli.RunNoErrOutput(kubectlcmd.NewDefaultKubectlCommand()); err != nil {
		// It prints the error as kubectl does and ends the process.
		kubectlutil.CheckErr(err)
	}
	return 0
}
