package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reyisjones/gpu-orchestrator/test/harness"
)

// What the README promises a stranger: one command, and a workload has succeeded, its nodes are
// shown, and nothing is left behind.
func TestDemoOfTheReadme(t *testing.T) {
	dir := t.TempDir()
	out, err := exec.CommandContext(t.Context(), harness.SandboxBinary(t), "up", "--demo", "--once", "--dir", dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"The sandbox is ready", "demo: 3 of 3 workloads Succeeded", "WORKLOAD", "gpu-node-0001"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	for _, p := range processesOf(t, dir) {
		t.Errorf("left behind: %s", p)
	}
}

// processesOf returns the command lines of the processes that mention the folder.
func processesOf(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, f := range files {
		// A process may end while it is looked at.
		if line, err := os.ReadFile(f); err == nil && strings.Contains(string(line), dir) {
			found = append(found, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}
