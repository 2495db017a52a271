package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// machine says on what, and with which command, a run was made.
func machine() string { return place() + "; `" + command() + "`." }

// place is the machine and what runs on it.
func place() string {
	return fmt.Sprintf("%d × %s, %s/%s, load %s at the end (shared with other work), %s; %s",
		runtime.NumCPU(), model(), runtime.GOOS, runtime.GOARCH, load(), runtime.Version(), versions())
}

func command() string {
	if os.Getenv("SECKILL_BENCH_RECORD") != "" {
		return "make bench-record"
	}
	return "make bench"
}

func model() string {
	text, _ := os.ReadFile("/proc/cpuinfo") // where there is none, the model is not known
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.TrimSpace(strings.TrimLeft(name, "\t :"))
		}
	}
	return "a processor of unknown name"
}

func load() string {
	text, _ := os.ReadFile("/proc/loadavg") // where there is none, it is not known
	first, _, _ := strings.Cut(string(text), " ")
	if first == "" {
		return "unknown"
	}
	return first
}

// versions asks the servers' programs.
func versions() string {
	ask := func(path string, args ...string) string {
		out, _ := exec.Command(path, args...).Output()
		line, _, _ := strings.Cut(string(out), "\n")
		return line
	}
	redis := firstField(ask("redis-server", "--version"), "v=")
	maria := ask("/usr/sbin/mariadbd", "--version")
	_, maria, _ = strings.Cut(maria, "Ver ")
	maria, _, _ = strings.Cut(maria, " ")
	return fmt.Sprintf("Redis %s, MariaDB %s, RabbitMQ %s", redis, maria, rabbitVersion())
}

func firstField(line, prefix string) string {
	for _, field := range strings.Fields(line) {
		if value, ok := strings.CutPrefix(field, prefix); ok {
			return value
		}
	}
	return "?"
}

// rabbitVersion is in the name of a folder; the program would take seconds to say it.
func rabbitVersion() string {
	found, _ := filepath.Glob("/usr/lib/rabbitmq/lib/rabbitmq_server-*")
	if len(found) == 0 {
		return "?"
	}
	_, version, _ := strings.Cut(filepath.Base(found[0]), "-")
	return version
}

// tick is the unit of processor times in /proc (USER_HZ).
const tick = time.Second / 100

// processorTime gives a clock of what processes have used so far; it stands still where there is no /proc.
func processorTime(pids ...int) func() time.Duration {
	return func() time.Duration {
		var sum time.Duration
		for _, pid := range pids {
			sum += usedBy(pid)
		}
		return sum
	}
}

func usedBy(pid int) time.Duration {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	_, after, found := strings.Cut(string(text), ") ") // the name before it may hold anything
	fields := strings.Fields(after)
	if err != nil || !found || len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * tick
}
