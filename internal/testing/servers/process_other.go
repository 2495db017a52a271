//go:build unix && !linux

package servers

import "syscall"

// childAttributes puts the child into its own process group. Other systems than Linux have no
// parent-death signal. There a server survives a test binary that ends with SIGKILL.
func childAttributes(syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// paused returns true, because other systems do not expose the threads' states.
func paused(int) bool { return true }
