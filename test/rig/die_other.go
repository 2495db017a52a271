//go:build !linux

package rig

import "syscall"

func dieWithTests() *syscall.SysProcAttr { return nil }
