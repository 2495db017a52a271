//go:build unix

package main

import (
	"syscall"
	"time"
)

// processorTime is the CPU time that this process has used. It includes the time in the kernel,
// where a generator spends most of it. An error leaves the figure at 0.
func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
