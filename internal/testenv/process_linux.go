package testenv

import "syscall"

// childAttributes gives the child a group of its own and lets the kernel kill it when the thread that started it
// ends, which it does with the whole process, however that dies (prctl(2), PR_SET_PDEATHSIG).
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
