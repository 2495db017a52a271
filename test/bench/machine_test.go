package bench

import (
	"cmp"
	"fmt"
	"maps"
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
	command := cmp.Or(os.Getenv("SECKILL_BENCH_COMMAND"), "go test -bench")
	return place() + "; load by " + loaderVersion() + "; `" + command + "`."
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

func loaderVersion() string {
	if _, err := exec.LookPath(loader); err != nil {
		return "this program, because " + loader + " is not installed"
	}
	text, _ := exec.Command(loader, "--version").Output() // it ends with a status of 1
	return loader + " " + found(`wrk (?:debian/)?(\S+)`, string(text))
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

// processes are the processes of an installation by their part in it.
type processes map[string][]int

// spent is processor time by part.
type spent map[string]time.Duration

// read returns the processor time that each part has used. It stands still where there is no /proc.
func (p processes) read() spent {
	now := spent{}
	for part, pids := range p {
		for _, pid := range pids {
			now[part] += usedBy(pid)
		}
	}
	return now
}

// since returns the processor time of each part since an earlier reading.
func (p processes) since(before spent) spent {
	now := p.read()
	for part := range now {
		now[part] -= before[part]
	}
	return now
}

// add returns the sum of both.
func (s spent) add(other spent) spent {
	sum := maps.Clone(other)
	for part, d := range s {
		sum[part] += d
	}
	return sum
}

// all is the sum of the parts.
func (s spent) all() (sum time.Duration) {
	for _, d := range s {
		sum += d
	}
	return sum
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
