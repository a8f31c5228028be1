package imports

import (
	"strings"
	"testing"
)

// sound is a small tree that breaks no rule. Each case below breaks one thing.
func sound() tree {
	return tree{
		"api/v1alpha1":   {name: "v1alpha1", imports: map[string]string{"k8s.io/apimachinery/pkg/runtime": "a.go"}},
		"config":         {name: "config", imports: map[string]string{"embed": "c.go"}},
		"core/cluster":   {name: "cluster", imports: map[string]string{"fmt": "n.go", "time": "n.go"}},
		"core/placement": {name: "placement", imports: map[string]string{"core/cluster": "p.go", "math/rand/v2": "p.go"}},
		"internal/state": {name: "state", imports: map[string]string{"core/cluster": "s.go", "k8s.io/client-go/rest": "s.go"}},
		"internal/sandbox/applet": {name: "applet", imports: map[string]string{
			"k8s.io/kubernetes/cmd/kube-apiserver/app": "k.go"}},
		"cmd/sandbox": {name: "main", imports: map[string]string{"internal/sandbox/applet": "main.go"}},
	}
}

func TestASoundTreePasses(t *testing.T) {
	if violations := check(sound(), rules); len(violations) > 0 {
		t.Errorf("the sound tree breaks a rule:\n%s", strings.Join(violations, "\n"))
	}
	if violations := checkNames(sound(), badNames); len(violations) > 0 {
		t.Errorf("the sound tree has a bad name:\n%s", strings.Join(violations, "\n"))
	}
}

func TestEachRuleCanFail(t *testing.T) {
	for _, c := range []struct{ from, imports string }{
		{"core/cluster", "os"},
		{"core/cluster", "os/exec"},
		{"core/cluster", "net"},
		{"core/cluster", "net/http"},
		{"core/cluster", "log"},
		{"core/cluster", "log/slog"},
		{"core/cluster", "database/sql"},
		{"core/cluster", "core/placement"},
		{"core/cluster", "gonum.org/v1/gonum/stat"},
		{"core/cluster", "api/v1alpha1"},
		{"core/placement", "internal/state"},
		{"core/placement", "k8s.io/api/core/v1"},
		{"core/placement", "sigs.k8s.io/controller-runtime"},
		{"core/placement", "github.com/go-logr/logr"},
		{"api/v1alpha1", "internal/state"},
		{"api/v1alpha1", "core/cluster"},
		{"api/v1alpha1", "sigs.k8s.io/controller-runtime/pkg/scheme"},
		{"api/v1alpha1", "k8s.io/client-go/rest"},
		{"config", "sigs.k8s.io/yaml"},
		{"internal/state", "internal/sandbox/applet"},
		{"internal/sandbox", "internal/sandbox/applet"},
		{"test/e2e", "internal/sandbox/applet"},
		{"internal/state", "k8s.io/kubernetes/cmd/kube-apiserver/app"},
		{"internal/backoff", "k8s.io/client-go/util/flowcontrol"},
		{"internal/telemetry", "internal/state"},
		{"internal/manager", "internal/sandbox/kwok"},
		{"cmd/manager", "internal/sandbox/instance"},
		{"test/e2e", "go.etcd.io/etcd/server/v3/etcdmain"},
	} {
		t.Run(c.from+" imports "+c.imports, func(t *testing.T) {
			broken := sound()
			p, ok := broken[c.from]
			if !ok {
				p = pkg{name: "new", imports: map[string]string{}}
			}
			p.imports[c.imports] = "broken.go"
			broken[c.from] = p
			violations := check(broken, rules)
			if len(violations) == 0 {
				t.Fatal("no rule objects")
			}
			for _, violation := range violations {
				if !strings.HasPrefix(violation, "broken.go imports "+c.imports) {
					t.Errorf("the sentence does not name the file and the import: %s", violation)
				}
			}
		})
	}
}

func TestEachRowAndPathIsNeeded(t *testing.T) {
	t.Run("a vanished path", func(t *testing.T) {
		broken := sound()
		delete(broken, "core/placement")
		if missing := vanished(broken, rules); len(missing) == 0 {
			t.Error("core/placement is gone from the tree and still in the table, and nothing objects")
		}
	})
	t.Run("a new core package without a row", func(t *testing.T) {
		broken := sound()
		broken["core/astrology"] = pkg{name: "astrology"}
		if missing := withoutRow(broken, rules); len(missing) == 0 {
			t.Error("core/astrology has no row and nothing objects")
		}
	})
	t.Run("a bad name", func(t *testing.T) {
		for _, path := range []string{"internal/util", "core/common", "internal/agent/helpers", "core/types"} {
			broken := sound()
			broken[path] = pkg{name: "fine"}
			if violations := checkNames(broken, badNames); len(violations) != 1 {
				t.Errorf("%s: %d objections, want 1", path, len(violations))
			}
		}
	})
	t.Run("a dependency", func(t *testing.T) {
		for _, dep := range []string{"net/http", "k8s.io/client-go/rest", "sigs.k8s.io/controller-runtime"} {
			if violations := checkDependencies([]string{"fmt", dep}); len(violations) != 1 {
				t.Errorf("%s: %d objections, want 1", dep, len(violations))
			}
		}
	})
}
