// Command table makes the table of reports/faults.md from the lines that fault runs print
// (-faults.out). It reads them from standard input and writes a row for each fault, in the order of
// first appearance. It writes to standard output, or replaces the table in the document that -doc
// names.
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
	doc := flag.String("doc", "", "document whose table is replaced")
	flag.Parse()
	if err := run(os.Stdin, os.Stdout, *doc); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer, doc string) error {
	if doc == "" {
		return writeTable(in, out)
	}
	text, err := os.ReadFile(doc)
	if err != nil {
		return err
	}
	renewed, err := replaceTable(string(text), in)
	if err != nil {
		return fmt.Errorf("%s: %w", doc, err)
	}
	return os.WriteFile(doc, []byte(renewed), 0o644)
}

// The table stands between these lines of a document.
const tableBegin, tableEnd = "<!-- runs -->\n", "<!-- end of runs -->\n"

func replaceTable(doc string, in io.Reader) (string, error) {
	before, rest, begins := strings.Cut(doc, tableBegin)
	_, after, ends := strings.Cut(rest, tableEnd)
	if !begins || !ends {
		return "", fmt.Errorf("no table between %q and %q", tableBegin, tableEnd)
	}
	var table strings.Builder
	err := writeTable(in, &table)
	return before + tableBegin + "\n" + table.String() + "\n" + tableEnd + after, err
}

// row sums up the runs of one fault on one topology.
type row struct {
	sums       map[string]int64
	recoveries []time.Duration
}

// summed lists the fields of a line that add up.
var summed = []string{"orders", "lost", "doubled", "oversold", "broken", "violations"}

func writeTable(in io.Reader, out io.Writer) error {
	rows, names := make(map[string]*row), []string{}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		fields, err := parse(lines.Text())
		if err != nil {
			return err
		}
		name := rowName(fields)
		if rows[name] == nil {
			rows[name], names = &row{sums: make(map[string]int64)}, append(names, name)
		}
		if err := rows[name].add(fields); err != nil {
			return fmt.Errorf("line %q: %w", lines.Text(), err)
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	fmt.Fprintln(out, "| fault | runs | orders | lost | doubled | oversold | broken | violations "+
		"| recovery, median | worst |")
	fmt.Fprintln(out, "|---|---|---|---|---|---|---|---|---|---|")
	for _, name := range names {
		rows[name].write(out, name)
	}
	return nil
}

// rowName is the fault, and the clusters on which it was injected.
func rowName(fields map[string]string) string {
	if fields["on"] == "" {
		return fields["fault"]
	}
	return fields["fault"] + " (" + strings.ReplaceAll(fields["on"], ",", ", ") + ")"
}

func parse(line string) (map[string]string, error) {
	fields := make(map[string]string)
	for _, field := range strings.Fields(line) {
		name, value, ok := strings.Cut(field, "=")
		if !ok {
			return nil, fmt.Errorf("line %q: %q is not name=value", line, field)
		}
		fields[name] = value
	}
	return fields, nil
}

func (r *row) add(fields map[string]string) error {
	fields["broken"] = cmp.Or(fields["broken"], "0") // the oldest lines lack it
	for _, name := range summed {
		n, err := strconv.ParseInt(fields[name], 10, 64)
		if err != nil {
			return fmt.Errorf("field %s: %w", name, err)
		}
		r.sums[name] += n
	}
	ms, err := strconv.ParseInt(fields["recovery_ms"], 10, 64)
	r.recoveries = append(r.recoveries, time.Duration(ms)*time.Millisecond)
	return err
}

func (r *row) write(out io.Writer, name string) {
	slices.Sort(r.recoveries)
	n := len(r.recoveries)
	fmt.Fprintf(out, "| %s | %d |", name, n)
	for _, field := range summed {
		fmt.Fprintf(out, " %d |", r.sums[field])
	}
	median, worst := (r.recoveries[(n-1)/2]+r.recoveries[n/2])/2, r.recoveries[n-1]
	fmt.Fprintf(out, " %.2f s | %.2f s |\n", median.Seconds(), worst.Seconds())
}
