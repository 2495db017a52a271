// Command table makes the table of reports/faults.md from the lines that fault runs print
// (-faults.out). It reads them from standard input, and replaces the table in the document that
// -doc names: a row for each fault, in the order of first appearance.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

func main() {
	doc := flag.String("doc", "reports/faults.md", "document whose table is replaced")
	flag.Parse()
	if err := run(os.Stdin, *doc); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(in io.Reader, doc string) error {
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
	table, err := tableOf(in)
	return before + tableBegin + "\n" + table + "\n" + tableEnd + after, err
}

// row sums up the runs of one fault on one topology.
type row struct {
	name       string
	sums       [6]int64 // orders, lost, doubled, oversold, broken, violations
	recoveries []time.Duration
}

func tableOf(in io.Reader) (string, error) {
	var rows []*row
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		run, err := parse(lines.Text())
		if err != nil {
			return "", fmt.Errorf("line %q: %w", lines.Text(), err)
		}
		i := slices.IndexFunc(rows, func(r *row) bool { return r.name == run.name })
		if i < 0 {
			i, rows = len(rows), append(rows, &row{name: run.name})
		}
		for field, n := range run.sums {
			rows[i].sums[field] += n
		}
		rows[i].recoveries = append(rows[i].recoveries, run.recoveries...)
	}
	table := "| fault | runs | orders | lost | doubled | oversold | broken | violations " +
		"| recovery, median | worst |\n|---|---|---|---|---|---|---|---|---|---|\n"
	for _, r := range rows {
		table += r.String()
	}
	return table, lines.Err()
}

// parse reads the line of one run. Its name is the fault, and the clusters on which it ran.
func parse(line string) (run row, err error) {
	line, on, clusters := strings.Cut(line, " on=")
	var seed, recovery int64
	s := &run.sums
	_, err = fmt.Sscanf(line, "fault=%s seed=%d orders=%d lost=%d doubled=%d oversold=%d "+
		"broken=%d recovery_ms=%d violations=%d",
		&run.name, &seed, &s[0], &s[1], &s[2], &s[3], &s[4], &recovery, &s[5])
	if clusters {
		run.name += " (" + strings.ReplaceAll(on, ",", ", ") + ")"
	}
	run.recoveries = []time.Duration{time.Duration(recovery) * time.Millisecond}
	return run, err
}

func (r *row) String() string {
	slices.Sort(r.recoveries)
	n := len(r.recoveries)
	median, worst := (r.recoveries[(n-1)/2]+r.recoveries[n/2])/2, r.recoveries[n-1]
	sums := strings.Trim(strings.ReplaceAll(fmt.Sprint(r.sums), " ", " | "), "[]")
	return fmt.Sprintf("| %s | %d | %s | %.2f s | %.2f s |\n", r.name, n, sums, median.Seconds(),
		worst.Seconds())
}
