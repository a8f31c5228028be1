package applet

import (
	"slices"
	"testing"
)

func TestLookup(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want bool
	}{
		"by the executable's name":         {[]string{"/assets/kube-apiserver", "--v=2"}, true},
		"kubectl by the executable's name": {[]string{"kubectl", "get", "pods"}, true},
		"by the first argument":            {[]string{"sandbox", "etcd", "--name=a"}, true},
		"kubectl is a command":             {[]string{"sandbox", "kubectl", "get", "pods"}, false},
		"another command":                  {[]string{"sandbox", "up"}, false},
		"no argument":                      {[]string{"sandbox"}, false},
		"nothing":                          {nil, false},
	} {
		if _, ok := Lookup(c.args); ok != c.want {
			t.Errorf("%s: found %v", name, ok)
		}
	}
}

// envtest looks for these three by name.
func TestNamesHasWhatEnvtestNeeds(t *testing.T) {
	for _, name := range []string{"etcd", "kube-apiserver", "kubectl"} {
		if !slices.Contains(Names(), name) {
			t.Errorf("there is no %s", name)
		}
	}
}
