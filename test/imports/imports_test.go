// Package imports holds the rules of this tree that a compiler does not: who may
// import whom, how long a file may be, and what core refuses to do. They are
// tests, so that breaking one is a decision that shows in a diff of the table.
package imports

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// effects are the parts of the standard library that act on the world. core
// decides over plain data, so that a decision can be replayed, simulated and
// embedded by anyone; time and rand are allowed for their types (lint forbids
// the clock and the global generator).
var effects = []string{
	"database/sql/...", "expvar", "log/...", "net/...", "os/...", "plugin",
	"runtime/debug", "runtime/pprof", "runtime/trace", "syscall/...", "testing/...", "unsafe",
}

// rules is the table. Paths are relative to the module unless they are an import
// path of somebody else's; "x/..." means x and everything below it; "std" is the
// standard library. A path of ours that vanishes fails TestEveryPathExists.
var rules = []rule{
	{
		path:  "core/...",
		only:  []string{"std", "gonum.org/v1/gonum/...", "core/..."},
		never: effects,
		why:   "core decides and never acts: no client, clock, log, goroutine or metric inside",
	},
	{
		path: "core/gpu/...",
		only: []string{"std"},
		why:  "it is what is known of GPUs, which even the world as data builds on",
	},
	{
		path: "core/cluster/...",
		only: []string{"std", "core/gpu"},
		why:  "it is the world as data, which everything else in core builds on",
	},
	{
		path: "core/collective/...",
		only: []string{"std", "core/cluster"},
		why:  "it is arithmetic over a topology: what a placement costs does not depend on who made it",
	},
	{
		path: "core/placement/...",
		only: []string{"std", "core/gpu", "core/cluster", "core/placement/..."},
		why:  "the engine sees the world only as core/cluster data, so that a what-if is an edited snapshot",
	},
	{
		path: "core/explain",
		only: []string{"std", "core/cluster", "core/placement"},
		why:  "it asks the engine, about edited snapshots: what it says of a cluster, it was told",
	},
	{
		path: "api/...",
		only: []string{"std", "api/...", "k8s.io/api/...", "k8s.io/apimachinery/..."},
		why:  "people import the API types into their own programs; each further dependency becomes theirs",
	},
	{
		path: "config/...",
		only: []string{"std"},
		why:  "it embeds the manifests and nothing else",
	},
	{
		path: "internal/backoff",
		only: []string{"std"},
		why:  "it is arithmetic",
	},
	{
		path: "internal/telemetry",
		only: []string{"std", "github.com/prometheus/...", "core/cluster", "core/placement"},
		why:  "everything that acts counts with it, so it must not pull in anything that acts; the cluster that it shows is core data",
	},
	{
		path: "internal/webhook",
		only: []string{
			"std", "api/v1alpha1", "core/cluster", "core/placement", "internal/controller", "internal/state", "internal/webhook/...",
			"golang.org/x/sync/semaphore", "golang.org/x/time/rate", "gomodules.xyz/jsonpatch/v2",
			"k8s.io/api/...", "k8s.io/apimachinery/...", "k8s.io/utils/...", "sigs.k8s.io/controller-runtime/...",
		},
		importedBy: []string{"internal/manager", "test/..."},
		why:        "it says of a workload what the controller would say, and asks nobody else: no client of its own, no telemetry of other systems",
	},
	{
		path:       "internal/webhook/certificates",
		only:       []string{"std", "k8s.io/api/...", "k8s.io/apimachinery/...", "k8s.io/client-go/util/cert", "k8s.io/utils/...", "sigs.k8s.io/controller-runtime/..."},
		importedBy: []string{"internal/webhook", "internal/manager", "test/..."},
		why:        "certificates have nothing to do with what is then said over them",
	},
	{
		path: "internal/policy",
		only: []string{"std", "api/v1alpha1", "core/cluster", "core/placement", "k8s.io/api/core/v1", "k8s.io/apimachinery/..."},
		why:  "who only places by policies, such as the importer of traces, must not link the language of their expressions",
	},
	{
		path: "internal/policy/expression",
		only: []string{
			"std", "api/v1alpha1", "core/cluster", "internal/policy", "github.com/google/cel-go/...",
			"k8s.io/apiserver/pkg/apis/cel", "k8s.io/apiserver/pkg/cel/...", "k8s.io/apimachinery/pkg/util/version",
		},
		why: "it evaluates over machines as data, whoever they came from",
	},
	{
		path:       "internal/cli",
		only:       []string{"std", "internal/problem", "internal/asking", "api/explain/v1alpha1", "sigs.k8s.io/yaml", "core/collective", "internal/sim/...", "github.com/spf13/cobra", "github.com/schollz/progressbar/v3", "golang.org/x/term", "k8s.io/apimachinery/pkg/api/resource"},
		importedBy: []string{"cmd/warp"},
		why:        "a command parses and prints; what it knows comes from elsewhere",
	},
	{
		path: "internal/asking",
		only: []string{
			"std", "api/explain/v1alpha1", "k8s.io/apimachinery/...", "k8s.io/client-go/rest", "k8s.io/client-go/tools/clientcmd/...",
			"charm.land/lipgloss/v2/...",
		},
		importedBy: []string{"internal/cli"},
		why:        "it knows explanations as anybody does who asks for them",
	},
	{
		path: "internal/decisions",
		only: []string{"std", "core/explain", "k8s.io/apimachinery/pkg/types", "github.com/go-logr/logr"},
		why:  "everything that decides remembers with it, so it must not pull in anything that acts",
	},
	{
		path:       "internal/explaining",
		only:       []string{"std", "api/...", "core/...", "internal/decisions", "internal/state", "internal/sim/capture", "k8s.io/api/...", "k8s.io/apimachinery/...", "k8s.io/utils/clock", "sigs.k8s.io/controller-runtime/pkg/client"},
		importedBy: []string{"internal/aggregated", "internal/manager"},
		why:        "it reads caches and asks the engine; who may ask, and over which wire, is not its business",
	},
	{
		path:       "internal/aggregated",
		importedBy: []string{"internal/manager"},
		why:        "it is a door of the manager",
	},
	{
		path: "internal/sim",
		only: []string{"std", "core/...", "internal/problem", "k8s.io/apimachinery/pkg/api/resource", "go.yaml.in/yaml/v3", "charm.land/lipgloss/v2/..."},
		why:  "a scenario is answered from its file alone: without a cluster, its API or its clients",
	},
	{
		path: "internal/problem",
		only: []string{"std"},
		why:  "every reader says what is wrong with a file in its form",
	},
	{
		path: "internal/sim/capture",
		only: []string{"std", "core/...", "k8s.io/apimachinery/pkg/api/resource", "go.yaml.in/yaml/v3"},
		why:  "it writes core data as a file: the cluster that it came from is somebody else's to know",
	},
	{
		path: "internal/sim/trace",
		only: []string{"std", "internal/problem"},
		why:  "traces are read without knowing what is done with them",
	},
	{
		path: "internal/sim/fabric",
		only: []string{"std", "core/gpu", "core/cluster", "core/collective", "internal/problem", "internal/sim/trace", "internal/sim/fabric/ibnet"},
		why:  "it makes clusters as core data, and does not know who replays what on them",
	},
	{
		path: "internal/sim/fabric/ibnet",
		only: []string{"std", "internal/problem"},
		why:  "it reads the output of a tool, whatever the fabric is then good for",
	},
	{
		path: "internal/sim/table",
		only: []string{"std", "charm.land/lipgloss/v2/..."},
		why:  "it lays out words and figures, whatever they mean",
	},
	{
		path: "internal/sim/replay",
		only: []string{"std", "core/...", "internal/problem", "internal/sim/chart", "internal/sim/table", "internal/sim/trace", "golang.org/x/sync/errgroup"},
		why:  "a replay is the engine under simulated time: without a cluster, its API or its clients",
	},
	{
		path: "internal/sim/importing",
		only: []string{"std", "internal/sim/trace"},
		why:  "it is what users' own data becomes, wherever that came from",
	},
	{
		path: "internal/sim/importing/slurm",
		only: []string{"std", "internal/problem", "internal/sim/trace", "internal/sim/importing"},
		why:  "it reads what commands printed: it runs none and asks no Slurm",
	},
	{
		path: "internal/sim/importing/kube",
		only: []string{
			"std", "core/cluster", "core/gpu", "api/v1alpha1", "internal/state", "internal/sim/trace", "internal/sim/importing",
			"k8s.io/api/...", "k8s.io/apimachinery/...", "k8s.io/component-helpers/...",
			"k8s.io/client-go/rest", "k8s.io/client-go/tools/clientcmd", "k8s.io/client-go/tools/pager",
		},
		importedBy: []string{"internal/cli"},
		why:        "it lists, and reads as the product reads; what watches or writes a cluster is not for it",
	},
	{
		path: "internal/sim/chart",
		only: []string{"std", "gonum.org/v1/plot/..."},
		why:  "it draws lines and bars, whatever they mean",
	},
	{
		path: "internal/sim/packing",
		only: []string{"std", "core/cluster", "core/gpu", "core/placement", "internal/sim/chart", "internal/sim/table", "internal/sim/trace", "golang.org/x/sync/errgroup"},
		why:  "it plays files against the engine: the strategies it judges are those that run in a cluster",
	},
	{
		path:       "internal/scheduler",
		importedBy: []string{"cmd/scheduler", "internal/sandbox/applet"},
		why:        "it links a whole kube-scheduler; what it knows of placing is in core and internal/state",
	},
	{
		path:       "internal/extender",
		importedBy: []string{"cmd/scheduler", "internal/sandbox/applet"},
		never:      []string{"k8s.io/kubernetes/...", "internal/scheduler"},
		why:        "it answers a kube-scheduler and contains none: what the two share is in core and internal/state",
	},
	{
		path:       "internal/sandbox/...",
		importedBy: []string{"cmd/sandbox", "test/..."},
		why:        "the sandbox runs the product; the product must not know that it is being watched",
	},
	{
		path: "test/faults/judge",
		only: []string{"std", "k8s.io/apimachinery/pkg/api/resource", "k8s.io/apimachinery/pkg/runtime/...", "k8s.io/client-go/rest", "k8s.io/client-go/tools/clientcmd"},
		why:  "a judge that shares code with what it judges shares its mistakes, types included",
	},
	{
		path: "test/faults/proxy",
		only: []string{"std", "k8s.io/apimachinery/...", "k8s.io/apiserver/pkg/endpoints/request", "k8s.io/client-go/..."},
		why:  "it knows Kubernetes' API and nothing of the product, so that it can stand before any component",
	},
	{
		path:       "internal/sandbox/applet",
		importedBy: []string{"cmd/..."},
		why:        "it links a whole Kubernetes control plane: minutes to compile and seconds to link for whoever imports it, so everyone else runs it as a process",
	},
	{
		path:       "k8s.io/kubernetes/cmd/kube-apiserver/...",
		importedBy: []string{"internal/sandbox/applet"},
		why:        "the control plane's programs are linked in one place",
	},
	{
		path:       "k8s.io/kubernetes/cmd/kube-controller-manager/...",
		importedBy: []string{"internal/sandbox/applet"},
		why:        "the control plane's programs are linked in one place",
	},
	{
		path:       "k8s.io/kubernetes/cmd/kube-scheduler/...",
		importedBy: []string{"internal/sandbox/applet", "internal/scheduler"},
		why:        "the control plane's programs are linked in one place, and ours is one of them",
	},
	{
		path:       "go.etcd.io/etcd/server/...",
		importedBy: []string{"internal/sandbox/applet"},
		why:        "the control plane's programs are linked in one place",
	},
}

// badNames say nothing about what a package is for, so everything ends up in them.
var badNames = []string{"util", "utils", "common", "helper", "helpers", "types", "misc", "shared", "base"}

func TestImportRules(t *testing.T) {
	for _, violation := range check(loadTree(t), rules) {
		t.Error(violation)
	}
}

func TestEveryPathExists(t *testing.T) {
	for _, missing := range vanished(loadTree(t), rules) {
		t.Error(missing)
	}
}

func TestEveryCorePackageHasARow(t *testing.T) {
	for _, missing := range withoutRow(loadTree(t), rules) {
		t.Error(missing)
	}
}

func TestPackageNames(t *testing.T) {
	for _, violation := range checkNames(loadTree(t), badNames) {
		t.Error(violation)
	}
}

// TestCoreDependencies asks the go command for what core pulls in, all the way
// down: the table above judges direct imports only.
func TestCoreDependencies(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "./core/...")
	cmd.Dir = root(t)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("listing the dependencies of core: %v\n%s", err, stderr.String())
	}
	deps := strings.Fields(string(out))
	if !slices.Contains(deps, module+"/core/placement") {
		t.Fatalf("core/placement is not among the %d packages listed: the question was wrong", len(deps))
	}
	for _, violation := range checkDependencies(deps) {
		t.Error(violation)
	}
}

func checkDependencies(deps []string) []string {
	var violations []string
	for _, dep := range deps {
		switch {
		case dep == "net/http", strings.HasPrefix(dep, "k8s.io/"), strings.HasPrefix(dep, "sigs.k8s.io/"):
			violations = append(violations, "core depends on "+dep+": it must be importable without Kubernetes and without a network")
		}
	}
	return violations
}
