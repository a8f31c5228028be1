// Package harness finds the programs that tests on a real control plane need: the sandbox's
// binary, and etcd, kube-apiserver and kubectl as envtest wants them. What is not there it
// builds, once. It starts nothing: that is for the test.
//
// A test never silently does less than it says: where a program can be neither found nor
// built, it is skipped with the reason, and under CI=true it fails.
package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
)

const (
	// sandboxEnv names a sandbox binary that is already built. A relative path is relative to
	// the root of the repository, as tests run in the folders of their packages.
	sandboxEnv = "SANDBOX_BIN"
	// assetsEnv is envtest's own name for the folder of etcd, kube-apiserver and kubectl.
	assetsEnv = "KUBEBUILDER_ASSETS"

	module = "github.com/reyisjones/gpu-orchestrator"
)

// buildReserve is what is left of go test's time after a build that takes too long: enough to
// say so, where the deadline itself would end the process with the stack of every goroutine.
const buildReserve = 20 * time.Second

// SandboxBinary returns the absolute path of the sandbox's binary: what SANDBOX_BIN names, or
// bin/sandbox in the repository, brought up to date first. Up to date that takes seconds; the
// first time on a machine it compiles a Kubernetes control plane, which takes minutes.
func SandboxBinary(t testing.TB) string {
	t.Helper()
	path, err := sandbox.find(t, findSandbox)
	return require(t, path, err)
}

// Assets returns the absolute path of a folder with etcd, kube-apiserver and kubectl: what
// KUBEBUILDER_ASSETS names, or bin/envtest in the repository, with links to SandboxBinary.
func Assets(t testing.TB) string {
	t.Helper()
	path, err := assets.find(t, findAssets)
	return require(t, path, err)
}

// Root returns the absolute path of the repository.
func Root(t testing.TB) string {
	t.Helper()
	root, err := findRoot()
	return require(t, root, err)
}

// once keeps what a process has found, so that it looks once.
type once struct {
	sync.Once
	path string
	err  error
}

func (o *once) find(t testing.TB, find func(testing.TB) (string, error)) (string, error) {
	o.Do(func() { o.path, o.err = find(t) })
	return o.path, o.err
}

var sandbox, assets once

// missingError says that the machine lacks a tool: not a fault of the code under test.
type missingError struct{ problem string }

func (e *missingError) Error() string { return e.problem }

// require returns the path, or ends the test: skipped if this machine cannot run it, failed if
// it should have been able to.
func require(t testing.TB, path string, err error) string {
	t.Helper()
	var missing *missingError
	switch {
	case err == nil:
		return path
	case errors.As(err, &missing) && !continuousIntegration():
		t.Skipf("skipped: %v", err)
	default:
		t.Fatal(err)
	}
	return ""
}

// continuousIntegration tells whether a skipped test would go unnoticed.
func continuousIntegration() bool {
	set, err := strconv.ParseBool(os.Getenv("CI"))
	return set && err == nil
}

func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		file, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.HasPrefix(file, []byte("module "+module+"\n")) {
			return dir, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("looking for the root of the repository: %w", err)
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("looking for the root of the repository: no folder above this one has the go.mod of " + module)
		}
		dir = parent
	}
}

func findSandbox(t testing.TB) (string, error) {
	root, err := findRoot()
	if err != nil {
		return "", err
	}
	if path := os.Getenv(sandboxEnv); path != "" {
		path = absolute(root, path)
		if _, err := exec.LookPath(path); err != nil {
			return "", fmt.Errorf("%s does not name a program: %w; build one with: make bin/sandbox", sandboxEnv, err)
		}
		return path, nil
	}
	return filepath.Join(root, "bin", "sandbox"), build(t, root)
}

// build compiles bin/sandbox with the script that everybody builds it with. Another process
// that builds at the same time is waited for, and leaves nothing to do.
func build(t testing.TB, root string) error {
	for _, tool := range []string{"go", "bash"} {
		if _, err := exec.LookPath(tool); err != nil {
			return &missingError{fmt.Sprintf("building the sandbox needs %s, which is not in PATH; or name a built one in %s", tool, sandboxEnv)}
		}
	}
	unlock, err := lock(root)
	if err != nil {
		return err
	}
	defer unlock()

	if _, err := os.Stat(filepath.Join(root, "bin", "sandbox")); err != nil {
		fmt.Fprintf(os.Stderr, "harness: building bin/sandbox, a whole Kubernetes control plane: the first time this takes minutes\n")
	}
	ctx, cancel := untilDeadline(t)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", filepath.Join(root, "scripts", "build.sh"), "sandbox")
	cmd.WaitDelay = time.Second
	output, err := cmd.CombinedOutput()
	switch {
	case ctx.Err() != nil:
		return errors.New("building the sandbox took longer than go test waits; what is compiled is kept: " +
			"run the test again, give it -timeout 40m, or build first with: make bin/sandbox")
	case err != nil:
		return fmt.Errorf("building the sandbox: %w\n%s", err, output)
	}
	return nil
}

// untilDeadline returns a context that ends shortly before go test loses patience.
func untilDeadline(t testing.TB) (context.Context, context.CancelFunc) {
	if limited, ok := t.(interface{ Deadline() (time.Time, bool) }); ok {
		if deadline, ok := limited.Deadline(); ok {
			return context.WithDeadline(context.Background(), deadline.Add(-buildReserve))
		}
	}
	return context.WithCancel(context.Background())
}

func findAssets(t testing.TB) (string, error) {
	root, err := findRoot()
	if err != nil {
		return "", err
	}
	if dir := os.Getenv(assetsEnv); dir != "" {
		dir = absolute(root, dir)
		for _, program := range []string{"etcd", "kube-apiserver", "kubectl"} {
			if _, err := exec.LookPath(filepath.Join(dir, program)); err != nil {
				return "", fmt.Errorf("%s does not name a folder with %s: %w; make one with: bin/sandbox assets bin/envtest", assetsEnv, program, err)
			}
		}
		return dir, nil
	}
	binary, err := sandbox.find(t, findSandbox)
	if err != nil {
		return "", err
	}
	unlock, err := lock(root)
	if err != nil {
		return "", err
	}
	defer unlock()
	dir := filepath.Join(root, "bin", "envtest")
	if output, err := exec.Command(binary, "assets", dir).CombinedOutput(); err != nil {
		return "", fmt.Errorf("laying out etcd, kube-apiserver and kubectl: %w\n%s", err, strings.TrimSpace(string(output)))
	}
	return dir, nil
}

// lock keeps test processes, of which go test runs several at a time, from building the same
// file at once. It waits for the others.
func lock(root string) (unlock func(), err error) {
	dir := filepath.Join(root, "bin")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the folder for binaries: %w", err)
	}
	file, err := fileutil.LockFile(filepath.Join(dir, ".harness.lock"), os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("waiting for other tests that build: %w", err)
	}
	return func() { _ = file.Close() }, nil
}

func absolute(root, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(root, path)
}
