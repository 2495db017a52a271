package metrics

import (
	"database/sql"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"flashsale.dev/seckill/internal/testing/reference"
)

var update = flag.Bool("update", false, "rewrite the package's table in docs/reference")

func TestReference_ListsAllMetrics(t *testing.T) {
	reference.Check(t, *update, "../../docs/reference/metrics.md", "metrics",
		"go test ./internal/metrics -update", referenceTable())
}

// referenceTable returns the tables of the metrics: those of both programs, and those of each
// program.
func referenceTable() string {
	api, consumer := NewAPI(""), NewConsumer("")
	for _, r := range []*Registry{api.Registry, consumer.Registry} {
		r.Connections(func() *redis.PoolStats { return nil }, &sql.DB{},
			func() error { return nil })
	}
	shared := func(d description, of []description) bool {
		return slices.ContainsFunc(of, func(o description) bool { return o.name == d.name })
	}
	var both, first, second []description
	for _, d := range api.descriptions {
		if shared(d, consumer.descriptions) {
			both = append(both, d)
		} else {
			first = append(first, d)
		}
	}
	for _, d := range consumer.descriptions {
		if !shared(d, both) {
			second = append(second, d)
		}
	}
	return table("Both programs", both) + table("The API", first) +
		table("The order consumer", second)
}

func table(title string, of []description) string {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n| metric | kind | labels | meaning |\n|---|---|---|---|\n", title)
	for _, d := range of {
		help := strings.ReplaceAll(d.help, "|", `\|`)
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", d.name, d.kind, strings.Join(d.labels, ", "),
			help)
	}
	return b.String() + "\n"
}
