package e2e

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/must"
)

// TestMetrics_DocumentedAndDashboardQueriesHaveData runs one rush on one installation for both
// checks.
func TestMetrics_DocumentedAndDashboardQueriesHaveData(t *testing.T) {
	r := installation.Start(t, suite, installation.Options{APIs: 2, Consumers: 1})
	prometheus := r.Prometheus(t)
	goods := sellOut(t, r)
	t.Run("every documented metric", func(t *testing.T) {
		requireEveryDocumentedMetric(t, r, goods)
	})
	t.Run("every query of the dashboards", func(t *testing.T) {
		requireDataForEveryQuery(t, prometheus)
	})
}

func requireEveryDocumentedMetric(t *testing.T, r *installation.Installation, goods string) {
	document := must.Get(os.ReadFile("../../docs/reference/metrics.md"))(t)
	_, tables, _ := strings.Cut(string(document), "## Both programs")
	both, rest, _ := strings.Cut(tables, "## The API")
	api, consumer, found := strings.Cut(rest, "## The order consumer")
	require.True(t, found)
	requireDocumentedMetrics(t, r.APIs[0].Metrics(t), both+api)
	requireDocumentedMetrics(t, r.APIs[1].Metrics(t), both+api)
	require.Eventually(t, func() bool {
		return strings.Contains(r.Consumers[0].Metrics(t),
			`seckill_sale_sold_units{goods_id="`+goods+`"} 200`)
	},
		time.Minute, 100*time.Millisecond, "the sample does not show the sale as sold")
	text := r.Consumers[0].Metrics(t)
	requireDocumentedMetrics(t, text, both+consumer)
	for _, line := range []string{
		`seckill_orders_written_total{outcome="created"} 200`, `seckill_sales{gate="open"} 1`,
		`seckill_pending_units 0`, `seckill_ledger_difference_units 0`,
		`seckill_ledger_unbalanced_sales 0`, `seckill_oversold_units 0`,
		`seckill_dead_letters_waiting 0`, `seckill_publisher_up 1`,
	} {
		require.Contains(t, text, line)
	}
}

// requireDocumentedMetrics checks that every metric of a document's tables is in a scrape.
func requireDocumentedMetrics(t *testing.T, scrape, tables string) {
	names := regexp.MustCompile("(?m)^\\| `(seckill_[a-z_]+)`").FindAllStringSubmatch(tables, -1)
	require.NotEmpty(t, names)
	for _, name := range names {
		require.Regexp(t, `(?m)^`+name[1]+`(_count)?[{ ]`, scrape)
	}
}
