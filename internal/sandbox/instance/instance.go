// Package instance keeps one sandbox to a folder, and tells other commands about
// the one that runs there.
package instance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"k8s.io/apimachinery/pkg/util/wait"
)

// State is what a running sandbox tells of itself.
type State struct {
	PID        int       `json:"pid"`
	Started    time.Time `json:"started"`
	Dir        string    `json:"dir"`
	Ready      bool      `json:"ready"`
	Nodes      int       `json:"nodes"`
	Profile    string    `json:"profile"`
	APIServer  string    `json:"apiServer,omitempty"`
	Kubeconfig string    `json:"kubeconfig,omitempty"`
	Metrics    string    `json:"metrics,omitempty"`
	Health     string    `json:"health,omitempty"`
	Logs       string    `json:"logs,omitempty"`
	Processes  []Process `json:"processes,omitempty"`
}

// Process is one child of a running sandbox.
type Process struct {
	Name string `json:"name"`
	PID  int    `json:"pid"`
}

// RunningError says that a sandbox runs in the folder already.
type RunningError struct{ State State }

func (e *RunningError) Error() string {
	s := e.State
	if s.PID == 0 {
		return "a sandbox is just starting in this folder"
	}
	state := "is starting"
	if s.Ready {
		state = "runs"
	}
	return fmt.Sprintf("a sandbox %s in %s: pid %d, since %s, API server %s, kubeconfig %s",
		state, s.Dir, s.PID, s.Started.Local().Format(time.DateTime), s.APIServer, s.Kubeconfig)
}

// ErrNotRunning says that no sandbox runs in the folder.
var ErrNotRunning = errors.New("no sandbox runs in this folder")

// Instance is the right to run a sandbox in a folder.
type Instance struct {
	dir  string
	lock *fileutil.LockedFile
}

const (
	// lockPatience outlasts a status command, which holds the lock for a moment
	// to learn whether anybody else does.
	lockPatience = 300 * time.Millisecond
	pollInterval = 20 * time.Millisecond
	// downPatience is more than a sandbox needs to end all its processes even if
	// each takes its whole grace period.
	downPatience = 90 * time.Second
)

func lockPath(dir string) string  { return filepath.Join(dir, "lock") }
func statePath(dir string) string { return filepath.Join(dir, "state.json") }

// Acquire takes the folder, which it makes if need be. A *RunningError says who
// has it.
func Acquire(ctx context.Context, dir string) (*Instance, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the sandbox's folder: %w", err)
	}
	var lock *fileutil.LockedFile
	err := wait.PollUntilContextTimeout(ctx, pollInterval, lockPatience, true, func(context.Context) (bool, error) {
		var err error
		lock, err = tryLock(dir)
		return lock != nil, err
	})
	if wait.Interrupted(err) {
		state, err := read(dir)
		if err != nil {
			return nil, err
		}
		return nil, &RunningError{State: state}
	}
	if err != nil {
		return nil, err
	}
	// What the last run said of itself is no longer true.
	if err := os.Remove(statePath(dir)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("removing the last run's state: %w", err)
	}
	return &Instance{dir: dir, lock: lock}, nil
}

// tryLock returns nil without an error when somebody else has the lock. The lock
// belongs to the open file: the kernel lets go of it when the process ends, however
// that comes about, and children do not inherit it.
func tryLock(dir string) (*fileutil.LockedFile, error) {
	lock, err := fileutil.TryLockFile(lockPath(dir), os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, fileutil.ErrLocked) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("locking the sandbox's folder: %w", err)
	}
	return lock, nil
}

// Publish tells other commands the state.
func (i *Instance) Publish(state State) error {
	data, err := json.MarshalIndent(state, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the sandbox's state: %w", err)
	}
	// Readers see the old state or the new one, never half of it.
	next := statePath(i.dir) + ".new"
	if err := os.WriteFile(next, data, 0o600); err != nil {
		return fmt.Errorf("writing the sandbox's state: %w", err)
	}
	if err := os.Rename(next, statePath(i.dir)); err != nil {
		return fmt.Errorf("writing the sandbox's state: %w", err)
	}
	return nil
}

// Release gives the folder back.
func (i *Instance) Release() error {
	err := os.Remove(statePath(i.dir))
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, i.lock.Close())
}

// Find returns the state of the sandbox that runs in the folder, or
// ErrNotRunning.
func Find(dir string) (State, error) {
	if _, err := os.Stat(lockPath(dir)); err != nil {
		return State{}, ErrNotRunning
	}
	lock, err := tryLock(dir)
	if err != nil {
		return State{}, err
	}
	if lock != nil {
		return State{}, errors.Join(ErrNotRunning, lock.Close())
	}
	return read(dir)
}

// read gives an empty state when the holder of the lock has not published any.
func read(dir string) (State, error) {
	data, err := os.ReadFile(statePath(dir))
	if errors.Is(err, os.ErrNotExist) {
		return State{}, nil
	}
	if err != nil {
		return State{}, fmt.Errorf("reading the sandbox's state: %w", err)
	}
	var state State
	if err := json.Unmarshal(data, &state); err != nil {
		return State{}, fmt.Errorf("decoding the sandbox's state: %w", err)
	}
	return state, nil
}

// Down asks the sandbox that runs in the folder to end, waits until it has, and
// returns what it was. A sandbox that does not end is killed.
func Down(ctx context.Context, dir string) (State, error) {
	state, err := Find(dir)
	if err != nil {
		return State{}, err
	}
	if state.PID == 0 {
		return State{}, &RunningError{}
	}
	if err := syscall.Kill(state.PID, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return state, fmt.Errorf("ending the sandbox with pid %d: %w", state.PID, err)
	}
	ended := func(context.Context) (bool, error) {
		_, err := Find(dir)
		if errors.Is(err, ErrNotRunning) {
			return true, nil
		}
		return false, err
	}
	err = wait.PollUntilContextTimeout(ctx, pollInterval, downPatience, true, ended)
	if !wait.Interrupted(err) || ctx.Err() != nil {
		return state, err
	}
	if err := syscall.Kill(state.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return state, fmt.Errorf("killing the sandbox with pid %d: %w", state.PID, err)
	}
	return state, wait.PollUntilContextTimeout(ctx, pollInterval, downPatience, true, ended)
}
