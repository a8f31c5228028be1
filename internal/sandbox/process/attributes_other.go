//go:build unix && !linux

package process

import "syscall"

// attributes puts a child in a process group of its own, so that Ctrl-C in a
// terminal reaches the parent alone, which then stops its children in order.
// Outside Linux no kernel service ends the child when the parent is killed.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
