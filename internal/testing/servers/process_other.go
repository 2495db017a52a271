//go:build unix && !linux

package servers

import "syscall"

// childAttributes gives the child a group of its own. Outside Linux a server outlives a test binary
// that is killed with SIGKILL: there is no parent-death signal.
func childAttributes(syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// paused takes the signal for the deed: the threads' states cannot be read here.
func paused(int) bool { return true }
