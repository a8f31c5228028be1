// Package applet makes one executable behave as each program of a Kubernetes
// control plane. It is the only package of the sandbox that imports those
// programs, because they are large: everything else starts them as processes.
package applet

import (
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/pflag"
)

// Main is a program's main function. It reads os.Args and returns the exit code,
// unless the program ends the process itself.
type Main func() int

// table names every program that the executable can be. It is built on demand
// and not kept: a package-level map could be changed.
func table() map[string]Main {
	return map[string]Main{
		"etcd":                    etcd,
		"extender":                runExtender,
		"kube-apiserver":          kubeAPIServer,
		"kube-controller-manager": kubeControllerManager,
		"kube-scheduler":          kubeScheduler,
		"kubectl":                 kubectl,
		"kwok":                    kwok,
		"manager":                 runManager,
		"scheduler":               runScheduler,
	}
}

// ForgetGlobalFlags drops the flags that Kubernetes' packages register for every
// program that imports them: cobra would take its --version for a command's own.
// Kubernetes' programs rely on theirs and do not call it.
func ForgetGlobalFlags() {
	pflag.CommandLine = pflag.NewFlagSet(os.Args[0], pflag.ExitOnError)
}

// Names lists the programs in alphabetical order.
func Names() []string {
	return slices.Sorted(maps.Keys(table()))
}

// Lookup says which program the arguments ask for: by the name the executable
// was called with (a symlink, or the first argument given to exec), or by a
// first argument that is a program's name. In the second case that argument is
// removed from os.Args, so that the program sees its own command line.
//
// kubectl is found only by the executable's name, as "sandbox kubectl" is a
// command of the sandbox, which chooses a kubeconfig first.
func Lookup(args []string) (Main, bool) {
	if len(args) == 0 {
		return nil, false
	}
	if main, ok := table()[filepath.Base(args[0])]; ok {
		return main, true
	}
	if len(args) < 2 || args[1] == "kubectl" {
		return nil, false
	}
	main, ok := table()[args[1]]
	if !ok {
		return nil, false
	}
	return func() int {
		os.Args = args[1:]
		return main()
	}, true
}
