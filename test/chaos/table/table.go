// Command table makes docs/reliability.md's table of the lines that chaos runs print (-chaos.out), read from standard
// input: one row for each harm, in the order in which it first came.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// row is all runs of one harm.
type row struct {
	sums     map[string]int64
	runs     int
	recovery []time.Duration
}

// counted are the numbers that add up.
var counted = []string{"orders", "lost", "doubled", "oversold", "violations"} //nolint:gochecknoglobals // a constant

func run(in io.Reader, out io.Writer) error {
	rows, order := make(map[string]*row), []string{}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		fields, err := read(lines.Text())
		if err != nil {
			return err
		}
		harm := fields["harm"]
		if rows[harm] == nil {
			rows[harm], order = &row{sums: make(map[string]int64)}, append(order, harm)
		}
		if err := rows[harm].add(fields); err != nil {
			return fmt.Errorf("line %q: %w", lines.Text(), err)
		}
	}
	fmt.Fprintln(out, "| harm | runs | orders | lost | doubled | oversold | violations | recovery, median | worst |")
	fmt.Fprintln(out, "|---|---|---|---|---|---|---|---|---|")
	for _, harm := range order {
		rows[harm].write(out, harm)
	}
	return nil
}

func read(line string) (map[string]string, error) {
	fields := make(map[string]string)
	for _, field := range strings.Fields(line) {
		name, value, ok := strings.Cut(field, "=")
		if !ok {
			return nil, fmt.Errorf("line %q: %q is no name=value", line, field)
		}
		fields[name] = value
	}
	return fields, nil
}

func (r *row) add(fields map[string]string) error {
	for _, name := range counted {
		n, err := strconv.ParseInt(fields[name], 10, 64)
		if err != nil {
			return err
		}
		r.sums[name] += n
	}
	ms, err := strconv.ParseInt(fields["recovery_ms"], 10, 64)
	r.runs, r.recovery = r.runs+1, append(r.recovery, time.Duration(ms)*time.Millisecond)
	return err
}

func (r *row) write(out io.Writer, harm string) {
	slices.Sort(r.recovery)
	fmt.Fprintf(out, "| %s | %d |", harm, r.runs)
	for _, name := range counted {
		fmt.Fprintf(out, " %d |", r.sums[name])
	}
	n := len(r.recovery)
	median, worst := (r.recovery[(n-1)/2]+r.recovery[n/2])/2, r.recovery[n-1]
	fmt.Fprintf(out, " %.2f s | %.2f s |\n", median.Seconds(), worst.Seconds())
}
