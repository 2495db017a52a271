package bench

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// machine names the machine, the versions and the command of a run.
func machine() string {
	command := "make bench"
	if os.Getenv(recordSetting) != "" {
		command = "make bench-record"
	}
	return place() + "; `" + command + "`."
}

// place is the machine and its software.
func place() string {
	return fmt.Sprintf("%d × %s, %s/%s, load %s at the end (shared with other work), %s; %s",
		runtime.NumCPU(), inFile("/proc/cpuinfo", `model name\s*: (.*)`), runtime.GOOS,
		runtime.GOARCH, inFile("/proc/loadavg", `^(\S+)`), runtime.Version(), versions())
}

// versions asks the servers' programs. RabbitMQ's version is in the name of a folder, because its
// program takes seconds to print it.
func versions() string {
	rabbit, _ := filepath.Glob("/usr/lib/rabbitmq/lib/rabbitmq_server-*")
	return fmt.Sprintf("Redis %s, MariaDB %s, RabbitMQ %s",
		printed(`v=(\S+)`, "redis-server", "--version"),
		printed(`Ver (\S+)`, "/usr/sbin/mariadbd", "--version"),
		found(`rabbitmq_server-(\S+)`, strings.Join(rabbit, " ")))
}

func inFile(name, pattern string) string {
	text, _ := os.ReadFile(name) // absent outside of Linux
	return found(pattern, string(text))
}

func printed(pattern, program string, args ...string) string {
	text, _ := exec.Command(program, args...).Output() // absent: nothing is found in it
	return found(pattern, string(text))
}

// found is the pattern's first group in a text.
func found(pattern, text string) string {
	return cmp.Or(append(regexp.MustCompile(pattern).FindStringSubmatch(text), "", "")[1],
		"unknown")
}

// tick is the unit of processor times in /proc (USER_HZ).
const tick = time.Second / 100

// cpuOf returns a clock of the processor time that processes have used. It stands still where there
// is no /proc.
func cpuOf(pids ...int) func() time.Duration {
	return func() time.Duration {
		var sum time.Duration
		for _, pid := range pids {
			sum += usedBy(pid)
		}
		return sum
	}
}

func usedBy(pid int) time.Duration {
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	_, after, _ := strings.Cut(string(text), ") ") // the name before it may contain anything
	fields := strings.Fields(after)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * tick
}
