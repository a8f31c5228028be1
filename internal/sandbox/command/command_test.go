package command

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func execute(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	root := New([]string{"etcd", "kube-apiserver", "kubectl"})
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(&out)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

func TestBadInputIsRefusedWithASentence(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"up", "--nodes", "0"}, "--nodes must be between 1 and"},
		{[]string{"up", "--nodes", "many"}, "invalid syntax"},
		{[]string{"up", "--gpus-per-node", "0"}, "--gpus-per-node must be at least 1"},
		{[]string{"up", "--profile", "dgx"}, "choose one of"},
		{[]string{"up", "--once"}, "--once is for --demo"},
		{[]string{"up", "--demo", "--no-manager"}, "--demo needs the manager"},
		{[]string{"up", "now"}, "unknown command"},
		{[]string{"assets"}, "accepts 1 arg"},
		{[]string{"status"}, "no sandbox runs in this folder"},
		{[]string{"down"}, "no sandbox runs in this folder"},
		{[]string{"kubectl", "--dir", dir, "get", "nodes"}, "start one with: sandbox up"},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			args := c.args
			if args[0] == "up" || args[0] == "status" || args[0] == "down" {
				args = append(args, "--dir", dir)
			}
			if args[0] == "kubectl" {
				t.Setenv("KUBECONFIG", "")
			}
			_, err := execute(t, args...)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want one with %q", err, c.want)
			}
		})
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("refused commands left %v: %v", left, err)
	}
}

func TestAssetsAreLinksToThisExecutable(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "bin")
	self, err := executable()
	if err != nil {
		t.Fatal(err)
	}
	// The second time replaces what is there, as after a new build.
	for range 2 {
		if out, err := execute(t, "assets", dir); err != nil || strings.TrimSpace(out) != dir {
			t.Fatalf("%q, %v", out, err)
		}
	}
	for _, name := range []string{"etcd", "kube-apiserver", "kubectl"} {
		if target, err := filepath.EvalSymlinks(filepath.Join(dir, name)); err != nil || target != self {
			t.Errorf("%s leads to %s: %v", name, target, err)
		}
	}
}

func TestKubectlUsesWhatThePersonChose(t *testing.T) {
	missing := t.TempDir()
	t.Setenv("KUBECONFIG", "/somewhere/else")
	if err := chooseKubeconfig("", []string{"get", "nodes"}); err != nil || os.Getenv("KUBECONFIG") != "/somewhere/else" {
		t.Errorf("$KUBECONFIG is now %s: %v", os.Getenv("KUBECONFIG"), err)
	}
	// A folder named on the command line is not overruled by a shell's setting.
	if err := chooseKubeconfig(missing, []string{"get", "nodes"}); err == nil {
		t.Error("a folder without a sandbox is passed over for $KUBECONFIG")
	}
	t.Setenv("KUBECONFIG", "")
	if err := chooseKubeconfig(missing, []string{"--kubeconfig=/mine", "get", "nodes"}); err != nil || os.Getenv("KUBECONFIG") != "" {
		t.Errorf("$KUBECONFIG is now %s: %v", os.Getenv("KUBECONFIG"), err)
	}
}
