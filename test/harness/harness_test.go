package harness

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestNamedSandbox(t *testing.T) {
	program := filepath.Join(t.TempDir(), "sandbox")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	relative, err := filepath.Rel(Root(t), program)
	if err != nil {
		t.Fatal(err)
	}
	for name, named := range map[string]string{"absolute": program, "relative to the repository": relative} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(sandboxEnv, named)
			if got, err := findSandbox(t); err != nil || got != program {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

// TestWrongNames holds that a variable that names nothing is told and not worked around: a
// build would test something else than what was asked for.
func TestWrongNames(t *testing.T) {
	empty := t.TempDir()
	for _, c := range []struct {
		env, value string
		find       func(testing.TB) (string, error)
		says       string
	}{
		{sandboxEnv, filepath.Join(empty, "gone"), findSandbox, "SANDBOX_BIN does not name a program"},
		{sandboxEnv, empty, findSandbox, "SANDBOX_BIN does not name a program"},
		{assetsEnv, empty, findAssets, "KUBEBUILDER_ASSETS does not name a folder with etcd"},
	} {
		t.Run(c.says, func(t *testing.T) {
			t.Setenv(c.env, c.value)
			_, err := c.find(t)
			var missing *missingError
			if err == nil || errors.As(err, &missing) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// recorder is a test that notes how it ended.
type recorder struct {
	testing.TB
	ended string
}

func (*recorder) Helper() {}

func (r *recorder) Skipf(format string, args ...any) { r.ended = fmt.Sprintf(format, args...) }

func (r *recorder) Fatal(args ...any) { r.ended = fmt.Sprint("FAIL: ", fmt.Sprint(args...)) }

// TestMissingTools holds that a skip is for people, who read it, and not for continuous
// integration, where nobody does.
func TestMissingTools(t *testing.T) {
	t.Setenv(sandboxEnv, "")
	t.Setenv("PATH", t.TempDir())
	_, err := findSandbox(t)
	const says = "building the sandbox needs go, which is not in PATH; or name a built one in SANDBOX_BIN"
	for ci, want := range map[string]string{
		"":      "skipped: " + says,
		"false": "skipped: " + says,
		"true":  "FAIL: " + says,
		"1":     "FAIL: " + says,
	} {
		t.Run("CI="+ci, func(t *testing.T) {
			t.Setenv("CI", ci)
			r := &recorder{TB: t}
			require(r, "", err)
			if r.ended != want {
				t.Errorf("got %q, want %q", r.ended, want)
			}
		})
	}
	r := &recorder{TB: t}
	if require(r, "", errors.New("the compiler says no")); r.ended != "FAIL: the compiler says no" {
		t.Errorf("a build that fails ends with %q", r.ended)
	}
}
