package bench

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// row is what one contender did in a measure.
type row struct {
	measure, unit, contender string
	ours                     bool
	rate                     float64
	ratio, cpuRatio          float64 // ours to this one's, of rates and of processor times
	cpu                      spent   // of one piece of work
}

// parts are the columns of processor times.
var parts = []string{apiPart, consumerPart, redisPart, sqlPart, rabbitPart}

// The parts of an installation.
const (
	apiPart      = "API"
	consumerPart = "consumer"
	redisPart    = "Redis"
	sqlPart      = "MariaDB"
	rabbitPart   = "RabbitMQ"
)

// figure is a measure without a floor, with its goal.
type figure struct{ measure, value, goal string }

// table has the measurements of a run.
type table struct {
	rows    []row
	figures []figure
}

// note adds a figure. A benchmark that measures again replaces its earlier figure.
func (t *table) note(measure, goal, format string, values ...any) {
	t.figures = slices.DeleteFunc(t.figures, func(f figure) bool { return f.measure == measure })
	t.figures = append(t.figures, figure{measure, fmt.Sprintf(format, values...), goal})
}

// String is the table in Markdown.
func (t table) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 1, ' ', 0)
	line := func(cells ...string) { fmt.Fprintln(w, "| "+strings.Join(cells, "\t| ")+"\t|") }
	if len(t.rows) > 0 {
		line(append([]string{
			"measure", "contender", "rate", "ours / its", "CPU each", "ours / its",
		}, parts...)...)
		line("---", "---", "--:", "--:", "--:", "--:", "--:", "--:", "--:", "--:", "--:")
	}
	for _, r := range t.rows {
		cells := []string{r.measure, r.contender, thousands(r.rate) + " " + r.unit + "/s"}
		if r.ours {
			cells = append(cells, "", micros(r.cpu.all()), "")
		} else {
			cells = append(cells, fmt.Sprintf("%.2f", r.ratio), micros(r.cpu.all()),
				fmt.Sprintf("%.2f", r.cpuRatio))
		}
		for _, part := range parts {
			cells = append(cells, micros(r.cpu[part]))
		}
		line(cells...)
	}
	if len(t.figures) > 0 {
		fmt.Fprintln(w)
		line("measure", "value", "goal")
		line("---", "---", "---")
	}
	for _, f := range t.figures {
		line(f.measure, f.value, f.goal)
	}
	_ = w.Flush() // a strings.Builder takes everything
	return strings.TrimPrefix(b.String(), "\n")
}

// publish prints the table, and appends it to a file if one is named.
func (t table) publish(w io.Writer, file string) error {
	if len(t.rows)+len(t.figures) == 0 {
		return nil
	}
	if _, err := fmt.Fprintf(w, "\n%s\n%s\n", machine(), t); err != nil || file == "" {
		return err
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	at := time.Now().UTC().Format("2006-01-02 15:04 UTC")
	_, err = fmt.Fprintf(f, "\n## %s\n\n%s\n\n%s", at, machine(), t)
	return errors.Join(err, f.Close())
}

// thousands writes a rate with commas.
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
