package metrics

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Document writes the tables of all metrics, as docs/metrics.md shows them: what both programs have, and what each has
// alone.
func Document(w io.Writer) error {
	api, consumer := NewAPI(""), NewConsumer("")
	api.Pools(Pools{})
	consumer.Pools(Pools{})
	in := func(all []Metric) func(Metric) bool {
		return func(m Metric) bool {
			return slices.ContainsFunc(all, func(other Metric) bool { return other.Name == m.Name })
		}
	}
	both := slices.DeleteFunc(slices.Clone(api.Metrics()), func(m Metric) bool { return !in(consumer.Metrics())(m) })
	var b strings.Builder
	table(&b, "Both programs", both)
	table(&b, "The API", slices.DeleteFunc(slices.Clone(api.Metrics()), in(both)))
	table(&b, "The order consumer", slices.DeleteFunc(slices.Clone(consumer.Metrics()), in(both)))
	_, err := io.WriteString(w, b.String())
	return err
}

func table(b *strings.Builder, title string, metrics []Metric) {
	fmt.Fprintf(b, "## %s\n\n| metric | kind | labels | what it tells |\n|---|---|---|---|\n", title)
	for _, m := range metrics {
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", m.Name, m.Kind, strings.Join(m.Labels, ", "), strings.ReplaceAll(m.Help, "|", `\|`))
	}
	b.WriteString("\n")
}
