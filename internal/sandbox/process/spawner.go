package process

import (
	"os/exec"
	"runtime"
)

// spawner starts every child from one operating system thread that lives as long
// as the group: Linux delivers a child's "parent died" signal when the thread
// that forked it ends, and the Go runtime ends idle threads.
type spawner struct {
	requests chan spawnRequest
}

type spawnRequest struct {
	cmd *exec.Cmd
	err chan error
}

func newSpawner() *spawner {
	s := &spawner{requests: make(chan spawnRequest)}
	go s.run()
	return s
}

func (s *spawner) run() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for r := range s.requests {
		r.err <- r.cmd.Start()
	}
}

func (s *spawner) start(cmd *exec.Cmd) error {
	r := spawnRequest{cmd: cmd, err: make(chan error, 1)}
	s.requests <- r
	return <-r.err
}

// close ends the thread. No start may follow, which the group's stopping flag
// ensures.
func (s *spawner) close() {
	close(s.requests)
}
