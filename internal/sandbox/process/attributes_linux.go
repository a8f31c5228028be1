package process

import "syscall"

// attributes puts a child in a process group of its own, so that Ctrl-C in a
// terminal reaches the parent alone, which then stops its children in order, and
// has the kernel kill the child when the parent dies.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
