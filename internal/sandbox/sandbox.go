// Package sandbox brings up a Kubernetes control plane with simulated GPU nodes
// and this product on one machine, keeps it up, and takes it down without a trace
// in the process table.
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/rest"

	"github.com/reyisjones/gpu-orchestrator/internal/sandbox/cluster"
	"github.com/reyisjones/gpu-orchestrator/internal/sandbox/console"
	"github.com/reyisjones/gpu-orchestrator/internal/sandbox/controlplane"
	"github.com/reyisjones/gpu-orchestrator/internal/sandbox/demo"
	"github.com/reyisjones/gpu-orchestrator/internal/sandbox/instance"
	"github.com/reyisjones/gpu-orchestrator/internal/sandbox/process"
)

const (
	// stopGrace is enough for an API server to finish its requests.
	stopGrace = 10 * time.Second
	// startTimeout is far above any start seen, and below a person's patience.
	startTimeout = 3 * time.Minute
)

// Config says what to bring up.
type Config struct {
	// Dir is where everything is kept: an absolute path.
	Dir string
	// DefaultDir says that commands find Dir without being told.
	DefaultDir bool
	// Executable is the multi-call binary that is every program of the cluster, and
	// Program is how a person calls it.
	Executable  string
	Program     string
	Nodes       int
	GPUsPerNode int
	Profile     cluster.Profile
	// Scheduler says who schedules: Stock, Second or Only.
	Scheduler string
	// Manager is false to leave this product out: its manifests are installed,
	// its manager is not started.
	Manager bool
	// ManagerArgs are added to the manager's command line.
	ManagerArgs []string
	// Extender has the scheduler ask the extender about GPU pods; ExtenderIgnorable has it do
	// without while the extender does not answer.
	Extender, ExtenderIgnorable bool
	// Demo runs the demonstration once the cluster is up.
	Demo bool
	// Once leaves after the demonstration instead of staying up.
	Once bool
}

// Who schedules: the stock scheduler, ours beside it for the pods that name it, or ours alone.
const (
	Stock  = "stock"
	Second = "second"
	Only   = "only"
)

// Sandbox is one cluster. Make one with New; Run it once.
type Sandbox struct {
	Config

	console *console.Console
	group   *process.Group
	plane   *controlplane.ControlPlane
	state   instance.State
	admin   *rest.Config
	// interrupted ends when the caller wants the sandbox to end.
	interrupted context.Context
	started     time.Time
	killed      chan struct{}
}

// New returns a sandbox that is not yet running.
func New(config Config, out *console.Console) *Sandbox {
	return &Sandbox{Config: config, console: out, killed: make(chan struct{})}
}

// ErrInterrupted says that the sandbox was told to end before it had done what it
// was started for: being ready or, with Once, showing the demonstration.
var ErrInterrupted = errors.New("interrupted")

// Run brings the sandbox up and returns when it is down again: because ctx ended,
// which is no error once the sandbox was ready; because a process crashed, which is
// a *process.CrashError; or because the demonstration is over and Once is set.
func (s *Sandbox) Run(ctx context.Context) error {
	s.interrupted = ctx
	s.started = time.Now()
	mine, err := instance.Acquire(ctx, s.Dir)
	if err != nil {
		return err
	}
	err = s.run(ctx, mine)
	return errors.Join(err, mine.Release())
}

func (s *Sandbox) run(ctx context.Context, mine *instance.Instance) error {
	s.state = instance.State{PID: pid(), Started: s.started, Dir: s.Dir, Nodes: s.Nodes, Profile: s.Profile.Name}
	if err := mine.Publish(s.state); err != nil {
		return err
	}
	var err error
	s.plane, err = controlplane.New(controlplane.Layout{Dir: s.Dir}, s.Executable, s.Nodes)
	if err != nil {
		return err
	}
	if s.Extender {
		if err := s.plane.AddExtender(s.ExtenderIgnorable); err != nil {
			return err
		}
	}
	s.state.APIServer, s.state.Kubeconfig, s.state.Logs = s.plane.URL(), s.plane.Kubeconfig(), s.plane.Logs()
	if s.Manager {
		s.state.Metrics, s.state.Health = s.plane.ManagerMetricsURL(), s.plane.ManagerHealthURL()
	}
	if err := mine.Publish(s.state); err != nil {
		return err
	}

	// The processes are not children of ctx: an interrupt lets this function end
	// them in order.
	var crash context.Context
	s.group, crash = process.NewGroup(context.WithoutCancel(ctx), stopGrace)
	defer s.stop()
	go s.forwardKill(crash)

	up, cancel := merge(ctx, crash)
	defer cancel()
	if err := s.start(up); err != nil {
		return s.explain(crash, err)
	}
	s.state.Ready, s.state.Processes = true, processes(s.group)
	if err := mine.Publish(s.state); err != nil {
		return err
	}
	s.summary()
	return s.explain(crash, s.stay(up))
}

// stay shows the demonstration if it is asked for and then waits for the end.
func (s *Sandbox) stay(ctx context.Context) error {
	if s.Demo {
		err := demo.Run(ctx, s.admin, demo.Size{Nodes: s.Nodes, GPUsPerNode: s.GPUsPerNode}, s.console)
		if s.Once || ctx.Err() != nil {
			return err
		}
		if err != nil {
			s.console.Printf("%v", err)
		}
		s.console.Printf("The sandbox stays up until Ctrl-C.")
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

// explain says why the sandbox ends: a crash is the cause of whatever error it
// led to, and an interrupt of a sandbox that is ready is no error.
func (s *Sandbox) explain(crash context.Context, err error) error {
	var crashed *process.CrashError
	switch {
	case err == nil:
		return nil
	case errors.As(context.Cause(crash), &crashed):
		s.console.Failed(crashed.Name + " ended unexpectedly")
		return crashed
	case s.interrupted.Err() == nil:
		return err
	case s.state.Ready && !s.Once:
		return nil
	default:
		return ErrInterrupted
	}
}

// Kill makes the sandbox end its processes at once instead of asking them to end.
// It is for the second interrupt, and may be called once.
func (s *Sandbox) Kill() { close(s.killed) }

func (s *Sandbox) forwardKill(done context.Context) {
	select {
	case <-s.killed:
		s.group.Kill()
	case <-done.Done():
	}
}

func (s *Sandbox) stop() {
	from := time.Now()
	s.console.Printf("%s", s.console.Paint(console.Dim, "stopping"))
	s.group.Stop()
	s.console.Printf("%s", s.console.Paint(console.Dim, fmt.Sprintf("stopped %d processes in %s", len(s.group.Children()), console.Seconds(time.Since(from)))))
}

// merge returns a context that ends with either of two, with the cause of the one
// that ended.
func merge(ctx, other context.Context) (context.Context, context.CancelFunc) {
	merged, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(other, func() { cancel(context.Cause(other)) })
	return merged, func() {
		stop()
		cancel(nil)
	}
}

func processes(group *process.Group) []instance.Process {
	var list []instance.Process
	for _, child := range group.Children() {
		list = append(list, instance.Process{Name: child.Name, PID: child.PID})
	}
	return list
}
