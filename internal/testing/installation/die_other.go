//go:build !linux

package installation

import "syscall"

func dieWithTests() *syscall.SysProcAttr { return nil }
