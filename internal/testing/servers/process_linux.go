package servers

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// childAttributes gives the child a group of its own and has the kernel end it when the thread that
// started it ends, which it does with the whole process, however that dies (prctl(2),
// PR_SET_PDEATHSIG).
func childAttributes(end syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: end}
}

// paused says whether every thread of pid has stopped. SIGSTOP reaches them one by one, and until
// the last has stopped a server may answer a question that was sent after the signal.
func paused(pid int) bool {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid)) // the pattern is a good one
	for _, task := range tasks {
		stat, err := os.ReadFile(task)
		if err != nil {
			continue // a thread that has ended answers nothing
		}
		// proc(5): pid (comm) state ...; comm may hold brackets of its own.
		_, state, _ := bytes.Cut(stat[bytes.LastIndexByte(stat, ')'):], []byte(" "))
		if !bytes.HasPrefix(state, []byte("T")) {
			return false
		}
	}
	return len(tasks) > 0
}
