package instance

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The test binary is also a sandbox that keeps a folder until SIGTERM.
const dirVariable = "INSTANCE_TEST_DIR"

func TestMain(m *testing.M) {
	dir := os.Getenv(dirVariable)
	if dir == "" {
		os.Exit(m.Run())
	}
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	mine, err := Acquire(context.Background(), dir)
	if err == nil {
		err = mine.Publish(State{PID: os.Getpid(), Dir: dir})
	}
	if err != nil {
		panic(err)
	}
	_, _ = os.Stdout.WriteString("!")
	<-terminated
	if err := mine.Release(); err != nil {
		panic(err)
	}
}

// other starts another process that has the folder.
func other(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), dirVariable+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return cmd
}

func acquire(t *testing.T, dir string) *Instance {
	t.Helper()
	mine, err := Acquire(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return mine
}

func TestSecondInstanceIsToldOfTheFirst(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "down")
	mine := acquire(t, dir)
	state := State{
		PID: 4711, Dir: dir, Ready: true, Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local),
		APIServer: "https://127.0.0.1:6443", Kubeconfig: dir + "/kubeconfig",
	}
	if err := mine.Publish(state); err != nil {
		t.Fatal(err)
	}

	_, err := Acquire(t.Context(), dir)

	var running *RunningError
	if !errors.As(err, &running) {
		t.Fatalf("the error is %v", err)
	}
	for _, want := range []string{"4711", "https://127.0.0.1:6443", dir + "/kubeconfig", "2026-01-02 03:04:05"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the message lacks %q: %v", want, err)
		}
	}
	if found, err := Find(dir); err != nil || found.PID != 4711 {
		t.Errorf("Find gives %+v, %v", found, err)
	}
	if err := mine.Release(); err != nil {
		t.Fatal(err)
	}
	if _, err := Find(dir); !errors.Is(err, ErrNotRunning) {
		t.Errorf("after the end Find gives %v", err)
	}
	if err := acquire(t, dir).Release(); err != nil {
		t.Fatal(err)
	}
}

func TestFolderOfAKilledProcessIsFree(t *testing.T) {
	dir := t.TempDir()
	cmd := other(t, dir)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()

	if _, err := Find(dir); !errors.Is(err, ErrNotRunning) {
		t.Errorf("Find gives %v", err)
	}
	mine := acquire(t, dir)
	// What the killed process said of itself must not be taken for the new one's.
	state, err := Find(dir)
	if err != nil || state.PID != 0 {
		t.Errorf("Find gives %+v, %v", state, err)
	}
	if err := mine.Release(); err != nil {
		t.Fatal(err)
	}
}

func TestDownEndsTheOtherProcess(t *testing.T) {
	dir := t.TempDir()
	cmd := other(t, dir)

	state, err := Down(t.Context(), dir)

	if err != nil || state.PID != cmd.Process.Pid {
		t.Fatalf("Down gives %+v, %v", state, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the other process ended with %v", err)
	}
	if _, err := Down(t.Context(), dir); !errors.Is(err, ErrNotRunning) {
		t.Errorf("the second Down gives %v", err)
	}
}

func TestNothingRunsInAFolderThatIsNotThere(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "missing")
	if _, err := Find(dir); !errors.Is(err, ErrNotRunning) {
		t.Errorf("Find gives %v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Error("asking has made the folder")
	}
}
