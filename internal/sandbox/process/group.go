// Package process runs a group of child processes that live and die together:
// they are stopped in reverse order of their start, the unexpected end of one is
// an event with its last log lines, and none outlives the parent, not even when
// that is killed.
//
// It does not restart anything: in a sandbox a crash is a finding.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Spec says what to run.
type Spec struct {
	// Name is what people call the process, and its argv[0].
	Name string
	// Path is the executable.
	Path string
	Args []string
	// Env is added to the parent's environment.
	Env []string
	// LogFile receives standard output and standard error. It is truncated.
	LogFile string
}

// Process is a started child.
type Process struct {
	Spec
	PID int
	// Started is when the child was started.
	Started time.Time

	cmd  *exec.Cmd
	done chan struct{} // closed when the child has been reaped
}

// Done is closed when the child has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Group is a set of children. Make one with NewGroup.
type Group struct {
	cancel  context.CancelCauseFunc
	spawner *spawner
	killed  chan struct{}
	kill    sync.Once
	stop    sync.Once

	mu       sync.Mutex
	children []*Process
	stopping bool
	grace    time.Duration
}

// crashGrace is what the others get after a crash: they may wait for the one that
// crashed, which will not come back.
const crashGrace = time.Second

// errStopping is the reason a Group refuses to start more children.
var errStopping = errors.New("the group is being stopped")

// NewGroup returns an empty group, and a context that is cancelled when one of
// its children ends without having been asked to. context.Cause then gives the
// *CrashError. grace is how long a child may take to end after SIGTERM before
// it gets SIGKILL.
func NewGroup(parent context.Context, grace time.Duration) (*Group, context.Context) {
	ctx, cancel := context.WithCancelCause(parent)
	return &Group{
		cancel:  cancel,
		spawner: newSpawner(),
		grace:   grace,
		killed:  make(chan struct{}),
	}, ctx
}

// Start runs a child. The log file's folder must exist.
func (g *Group) Start(spec Spec) (*Process, error) {
	logFile, err := os.Create(spec.LogFile)
	if err != nil {
		return nil, fmt.Errorf("creating the log of %s: %w", spec.Name, err)
	}
	// The child has its own copy of the descriptor once it is started.
	defer logFile.Close()

	cmd := exec.Command(spec.Path, spec.Args...)
	cmd.Args[0] = spec.Name
	cmd.Env = append(os.Environ(), spec.Env...)
	cmd.Stdout = logFile
	cmd.Stderr = logFile
	cmd.SysProcAttr = attributes()

	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopping {
		return nil, fmt.Errorf("starting %s: %w", spec.Name, errStopping)
	}
	if err := g.spawner.start(cmd); err != nil {
		return nil, fmt.Errorf("starting %s: %w", spec.Name, err)
	}
	p := &Process{
		Spec:    spec,
		PID:     cmd.Process.Pid,
		Started: time.Now(),
		cmd:     cmd,
		done:    make(chan struct{}),
	}
	g.children = append(g.children, p)
	go g.reap(p)
	return p, nil
}

func (g *Group) reap(p *Process) {
	err := p.cmd.Wait()
	close(p.done)

	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.stopping {
		g.grace = min(g.grace, crashGrace)
		g.cancel(newCrashError(p, err))
	}
}

// Children lists the children in the order of their start.
func (g *Group) Children() []*Process {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.children)
}

// Stop ends every child, the last started first, and returns when all have been
// reaped. Each gets SIGTERM and, after the grace period, SIGKILL. It may be
// called more than once.
func (g *Group) Stop() {
	g.stop.Do(g.stopAll)
}

func (g *Group) stopAll() {
	g.mu.Lock()
	g.stopping = true
	grace := g.grace
	children := slices.Clone(g.children)
	g.mu.Unlock()

	for _, p := range slices.Backward(children) {
		g.end(p, grace)
	}
	g.spawner.close()
	g.cancel(context.Canceled)
}

func (g *Group) end(p *Process, patience time.Duration) {
	// Signals to a child that has been reaped are refused by os.Process.
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	grace := time.NewTimer(patience)
	defer grace.Stop()
	select {
	case <-p.done:
		return
	case <-grace.C:
	case <-g.killed:
	}
	_ = p.cmd.Process.Kill()
	<-p.done
}

// Kill makes a Stop, running or to come, skip the grace period. It may be called
// more than once.
func (g *Group) Kill() {
	g.kill.Do(func() { close(g.killed) })
}
