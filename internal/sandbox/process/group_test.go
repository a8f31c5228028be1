package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// The test binary is its own child: TestMain plays the part that the environment
// names. A child writes "ready" to a named pipe once it can take signals, and holds
// the pipe open until it ends, so that a reader sees both without polling.
const (
	roleVariable  = "PROCESS_TEST_ROLE"
	pipeVariable  = "PROCESS_TEST_PIPE"
	orderVariable = "PROCESS_TEST_ORDER"

	obedient = "obedient" // ends at SIGTERM, after noting its name
	stubborn = "stubborn" // ignores SIGTERM
	crashing = "crashing" // fills its log and exits with code 3
	parent   = "parent"   // has a child of its own in a Group
)

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "":
		os.Exit(m.Run())
	case obedient:
		terminated := make(chan os.Signal, 1)
		signal.Notify(terminated, syscall.SIGTERM)
		announce()
		<-terminated
		note(os.Args[0])
	case stubborn:
		signal.Ignore(syscall.SIGTERM)
		announce()
		forever()
	case crashing:
		for i := range 100 {
			fmt.Fprintf(os.Stderr, "line %d\n", i)
		}
		os.Exit(3)
	case parent:
		group, _ := NewGroup(context.Background(), time.Minute)
		if _, err := group.Start(Spec{
			Name: "grandchild", Path: "/proc/self/exe", LogFile: os.DevNull,
			Env: []string{roleVariable + "=" + stubborn},
		}); err != nil {
			panic(err)
		}
		forever()
	}
}

// forever waits for a signal that nobody sends: the runtime ends a program whose
// goroutines all wait for each other.
func forever() {
	never := make(chan os.Signal, 1)
	signal.Notify(never, syscall.SIGUSR1)
	<-never
}

func announce() {
	pipe, err := os.OpenFile(os.Getenv(pipeVariable), os.O_WRONLY, 0)
	if err != nil {
		panic(err)
	}
	if _, err := pipe.WriteString("ready\n"); err != nil {
		panic(err)
	}
	keepOpen(pipe)
}

// keepOpen gives the pipe a descriptor that no finalizer closes.
func keepOpen(pipe *os.File) {
	if _, err := syscall.Dup(int(pipe.Fd())); err != nil {
		panic(err)
	}
}

func note(name string) {
	order, err := os.OpenFile(os.Getenv(orderVariable), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	fmt.Fprintln(order, name)
}

// child is the test's end of a child's pipe.
type child struct {
	t      *testing.T
	path   string
	reader *bufio.Reader
}

func newChild(t *testing.T) *child {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return &child{t: t, path: path}
}

func (c *child) spec(name, role string, env ...string) Spec {
	self, err := os.Executable()
	if err != nil {
		c.t.Fatal(err)
	}
	return Spec{
		Name: name, Path: self, LogFile: filepath.Join(c.t.TempDir(), "log"),
		Env: append(env, roleVariable+"="+role, pipeVariable+"="+c.path),
	}
}

// awaitReady blocks until the child takes signals.
func (c *child) awaitReady() {
	c.t.Helper()
	pipe, err := os.Open(c.path)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = pipe.Close() })
	c.reader = bufio.NewReader(pipe)
	if line, err := c.reader.ReadString('\n'); err != nil || line != "ready\n" {
		c.t.Fatalf("the child said %q: %v", line, err)
	}
}

// awaitEnd blocks until no process holds the pipe.
func (c *child) awaitEnd() {
	c.t.Helper()
	if rest, err := io.ReadAll(c.reader); err != nil || len(rest) > 0 {
		c.t.Fatalf("the child said %q: %v", rest, err)
	}
}

func start(t *testing.T, group *Group, spec Spec) *Process {
	t.Helper()
	p, err := group.Start(spec)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestStopEndsChildrenInReverseOrder(t *testing.T) {
	order := filepath.Join(t.TempDir(), "order")
	group, ctx := NewGroup(t.Context(), time.Minute)
	names := []string{"first", "second", "third"}
	var children []*child
	for _, name := range names {
		c := newChild(t)
		start(t, group, c.spec(name, obedient, orderVariable+"="+order))
		c.awaitReady()
		children = append(children, c)
	}

	group.Stop()

	for _, c := range children {
		c.awaitEnd()
	}
	ended, err := os.ReadFile(order)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(names)
	if got := strings.Fields(string(ended)); !slices.Equal(got, names) {
		t.Errorf("ended in the order %v, want %v", got, names)
	}
	var crash *CrashError
	if errors.As(context.Cause(ctx), &crash) {
		t.Errorf("a stopped child counts as crashed: %v", crash)
	}
	if _, err := group.Start(newChild(t).spec("late", obedient)); err == nil {
		t.Error("a stopped group starts another child")
	}
	group.Stop()
}

func TestCrashIsReportedByNameWithTheEndOfTheLog(t *testing.T) {
	group, ctx := NewGroup(t.Context(), time.Minute)
	defer group.Stop()
	spec := newChild(t).spec("etcd", crashing)
	start(t, group, spec)

	<-ctx.Done()

	var crash *CrashError
	if !errors.As(context.Cause(ctx), &crash) {
		t.Fatalf("the cause is %v, want a crash", context.Cause(ctx))
	}
	if crash.Name != "etcd" || crash.State != "exit status 3" || crash.LogFile != spec.LogFile {
		t.Errorf("the crash names %q, %q, %q", crash.Name, crash.State, crash.LogFile)
	}
	if len(crash.Tail) != tailLines || crash.Tail[0] != "line 80" || crash.Tail[tailLines-1] != "line 99" {
		t.Errorf("the tail is %v", crash.Tail)
	}
	for _, want := range []string{"etcd", "exit status 3", spec.LogFile, "line 99"} {
		if !strings.Contains(crash.Error(), want) {
			t.Errorf("the message lacks %q:\n%v", want, crash)
		}
	}
}

func TestAfterACrashTheOthersAreNotWaitedForLong(t *testing.T) {
	group, ctx := NewGroup(t.Context(), time.Hour)
	survivor := newChild(t)
	start(t, group, survivor.spec("survivor", stubborn))
	survivor.awaitReady()
	start(t, group, newChild(t).spec("etcd", crashing))
	<-ctx.Done()

	group.Stop()

	survivor.awaitEnd()
}

func TestStubbornChildIsKilledAfterTheGracePeriod(t *testing.T) {
	group, _ := NewGroup(t.Context(), time.Millisecond)
	c := newChild(t)
	p := start(t, group, c.spec("stubborn", stubborn))
	c.awaitReady()

	group.Stop()

	c.awaitEnd()
	if status := p.cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGKILL {
		t.Errorf("the child ended with %v, want SIGKILL", p.cmd.ProcessState)
	}
}

func TestKillSkipsTheGracePeriod(t *testing.T) {
	group, _ := NewGroup(t.Context(), time.Hour)
	c := newChild(t)
	start(t, group, c.spec("stubborn", stubborn))
	c.awaitReady()

	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		group.Stop()
	}()
	group.Kill()
	group.Kill()

	<-stopped
	c.awaitEnd()
}

func TestNoChildOutlivesAKilledParent(t *testing.T) {
	if _, err := os.Stat("/proc/self/exe"); err != nil {
		t.Skip("only Linux tells children of their parent's death")
	}
	c := newChild(t)
	spec := c.spec("parent", parent)
	cmd := exec.Command(spec.Path)
	cmd.Env = append(os.Environ(), spec.Env...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c.awaitReady()

	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}

	c.awaitEnd()
	_ = cmd.Wait()
}

// Linux takes the end of the thread that forked a child for the end of its parent.
func TestChildrenOutliveTheThreadsOfTheirParent(t *testing.T) {
	order := filepath.Join(t.TempDir(), "order")
	group, _ := NewGroup(t.Context(), time.Minute)
	c := newChild(t)
	start(t, group, c.spec("child", obedient, orderVariable+"="+order))
	c.awaitReady()

	// A thread ends with a goroutine that is locked to it. These need one each, all
	// at the same time, so that every idle thread is among them.
	const threads = 64
	var ended sync.WaitGroup
	all := make(chan struct{})
	var arrived atomic.Int32
	for range threads {
		ended.Go(func() {
			runtime.LockOSThread()
			if arrived.Add(1) == threads {
				close(all)
			}
			<-all
		})
	}
	ended.Wait()
	group.Stop()

	if noted, err := os.ReadFile(order); err != nil || string(noted) != "child\n" {
		t.Errorf("the child did not live to be asked to end: %q, %v", noted, err)
	}
}

func TestEachChildHasItsOwnProcessGroup(t *testing.T) {
	group, _ := NewGroup(t.Context(), time.Minute)
	defer group.Stop()
	c := newChild(t)
	p := start(t, group, c.spec("child", obedient, orderVariable+"="+os.DevNull))
	c.awaitReady()

	// Ctrl-C goes to the terminal's foreground process group, which must not be
	// the child's.
	pgid, err := syscall.Getpgid(p.PID)
	if err != nil {
		t.Fatal(err)
	}
	if pgid != p.PID {
		t.Errorf("the child is in process group %d, want its own, %d", pgid, p.PID)
	}
}

func TestStartSaysWhatCannotBeStarted(t *testing.T) {
	group, ctx := NewGroup(t.Context(), time.Minute)
	defer group.Stop()
	_, err := group.Start(Spec{Name: "etcd", Path: "/nonexistent/etcd", LogFile: filepath.Join(t.TempDir(), "log")})
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "starting etcd") {
		t.Errorf("the error is %v", err)
	}
	if ctx.Err() != nil {
		t.Error("a child that never started counts as crashed")
	}
}
