package servers

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// childAttributes puts the child into its own process group. The kernel ends the child when the
// thread that started it ends. That thread ends with the process, however the process ends
// (prctl(2), PR_SET_PDEATHSIG).
func childAttributes(end syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: end}
}

// paused reports whether every thread of pid has stopped. SIGSTOP reaches the threads one by one.
// Until the last has stopped, a server may answer a request that came after the signal.
func paused(pid int) bool {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid)) // the pattern is a good one
	for _, task := range tasks {
		stat, err := os.ReadFile(task)
		if err != nil {
			continue // an ended thread does not answer
		}
		// proc(5) documents the form: pid (comm) state ...; comm may contain brackets.
		_, state, _ := bytes.Cut(stat[bytes.LastIndexByte(stat, ')'):], []byte(" "))
		if !bytes.HasPrefix(state, []byte("T")) {
			return false
		}
	}
	return len(tasks) > 0
}
