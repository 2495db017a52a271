package installation

import "syscall"

// dieWithTests has the kernel kill a program when the tests that started it are gone, however they went.
func dieWithTests() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
