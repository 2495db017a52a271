// Command table makes reports/faults.md's table of the lines that fault runs print (-faults.out), read from standard
// input: one row for each harm, in the order in which it first came. It prints the table, or puts it into the document that
// -doc names, in the place of the one that is there.
package main

import (
	"bufio"
	"cmp"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	doc := flag.String("doc", "", "a document whose table is renewed")
	flag.Parse()
	if err := tell(os.Stdin, os.Stdout, *doc); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func tell(in io.Reader, out io.Writer, doc string) error {
	if doc == "" {
		return run(in, out)
	}
	text, err := os.ReadFile(doc)
	if err != nil {
		return err
	}
	renewed, err := renew(string(text), in)
	if err != nil {
		return err
	}
	return os.WriteFile(doc, []byte(renewed), 0o644)
}

// The lines of a document between which the table stands.
const from, to = "<!-- runs -->\n", "<!-- end of runs -->\n"

func renew(doc string, in io.Reader) (string, error) {
	before, rest, found := strings.Cut(doc, from)
	_, after, ends := strings.Cut(rest, to)
	if !found || !ends {
		return "", fmt.Errorf("the document has no place for the table (%q)", from)
	}
	var table strings.Builder
	err := run(in, &table)
	return before + from + "\n" + table.String() + "\n" + to + after, err
}

// row is all runs of one harm.
type row struct {
	sums     map[string]int64
	runs     int
	recovery []time.Duration
}

// counted are the numbers that add up.
var counted = []string{"orders", "lost", "doubled", "oversold", "broken", "violations"}

func run(in io.Reader, out io.Writer) error {
	rows, order := make(map[string]*row), []string{}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		fields, err := read(lines.Text())
		if err != nil {
			return err
		}
		harm := named(fields)
		if rows[harm] == nil {
			rows[harm], order = &row{sums: make(map[string]int64)}, append(order, harm)
		}
		if err := rows[harm].add(fields); err != nil {
			return fmt.Errorf("line %q: %w", lines.Text(), err)
		}
	}
	fmt.Fprintln(out, "| fault | runs | orders | lost | doubled | oversold | broken | violations | recovery, median | worst |")
	fmt.Fprintln(out, "|---|---|---|---|---|---|---|---|---|---|")
	for _, harm := range order {
		rows[harm].write(out, harm)
	}
	return nil
}

// named is the harm, and on which clusters it was done.
func named(fields map[string]string) string {
	if fields["on"] == "" {
		return fields["fault"]
	}
	return fields["fault"] + " (" + strings.ReplaceAll(fields["on"], ",", ", ") + ")"
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
	fields["broken"] = cmp.Or(fields["broken"], "0") // the oldest lines have none: no promise could be broken then
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
