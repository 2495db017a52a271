package bench

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// row is one measure beside one floor.
type row struct {
	measure, unit, floor       string
	oursRate, floorRate, ratio float64
	oursCPU, floorCPU          time.Duration // of one piece of work; 0 where it was not measured
	rounds                     int
}

// figure is a measure that stands for itself, with what was wanted of it.
type figure struct{ measure, value, wanted string }

// table is what a run found out.
type table struct {
	rows    []row
	figures []figure
}

// report keeps a figure for the end; what a benchmark measures again replaces what it measured before.
func (t *table) note(measure, wanted, format string, values ...any) {
	t.figures = slices.DeleteFunc(t.figures, func(f figure) bool { return f.measure == measure })
	t.figures = append(t.figures, figure{measure, fmt.Sprintf(format, values...), wanted})
}

func (t table) duels() [][]string {
	cells := [][]string{
		{"measure", "floor", "ours", "floor's", "ours / floor", "CPU, ours", "CPU, floor's"},
		{"---", "---", "--:", "--:", "--:", "--:", "--:"},
	}
	for _, r := range t.rows {
		cells = append(cells, []string{
			r.measure, r.floor, thousands(r.oursRate) + " " + r.unit + "/s", thousands(r.floorRate) + " /s",
			fmt.Sprintf("%.2f", r.ratio), micros(r.oursCPU), micros(r.floorCPU),
		})
	}
	return cells
}

func (t table) others() [][]string {
	cells := [][]string{{"measure", "value", "wanted"}, {"---", "---", "---"}}
	for _, f := range t.figures {
		cells = append(cells, []string{f.measure, f.value, f.wanted})
	}
	return cells
}

// String is what was found in Markdown.
func (t table) String() string {
	var parts []string
	for _, cells := range [][][]string{t.duels(), t.others()} {
		if len(cells) > 2 {
			parts = append(parts, aligned(cells))
		}
	}
	return strings.Join(parts, "\n")
}

// aligned is a table in Markdown whose columns are as wide as their widest cell.
func aligned(cells [][]string) string {
	widths := make([]int, len(cells[0]))
	for _, line := range cells {
		for i, cell := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, line := range cells {
		for i, cell := range line {
			fmt.Fprintf(&b, "| %s%s ", cell, strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)))
		}
		b.WriteString("|\n")
	}
	return b.String()
}

// publish prints the table, and appends it to a file where one is named.
func (t table) publish(w io.Writer, record string) error {
	if len(t.rows)+len(t.figures) == 0 {
		return nil
	}
	if _, err := fmt.Fprintf(w, "\n%s\n%s\n", machine(), t); err != nil || record == "" {
		return err
	}
	f, err := os.OpenFile(record, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "\n### %s\n\n%s\n\n%s", time.Now().UTC().Format("2006-01-02 15:04 UTC"), machine(), t)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}

// thousands writes a rate with commas, to three digits that mean something.
func thousands(x float64) string {
	text := fmt.Sprintf("%.0f", x)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func micros(d time.Duration) string {
	if d == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f µs", float64(d)/float64(time.Microsecond))
}

func dashed(name string) string {
	return strings.Join(strings.FieldsFunc(name, func(r rune) bool { return r == ' ' || r == ',' }), "-")
}
