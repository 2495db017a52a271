package e2e

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/loadgen/apiclient"
	"flashsale.dev/seckill/internal/loadgen/buyer"
	"flashsale.dev/seckill/internal/testing/apicheck"
	"flashsale.dev/seckill/internal/testing/buyers"
	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/must"
)

// rushed has the result of a rush that is finished and drained.
type rushed struct {
	report buyers.Report
	ledger apiclient.Ledger
	facts  installation.Facts
}

// rushFor runs a rush for a sale over all of the installation's APIs, until all orders are written.
// Buyers repeat a request whose connection breaks, for example because the server closes an idle
// connection. The HTTP client does not repeat a POST.
func rushFor(t *testing.T, r *installation.Installation, goods string, p buyers.Plan) rushed {
	p.GoodsID, p.Token, p.RetryErrors = goods, r.BuyerToken, true
	p.WrapClient = func(c *http.Client) *http.Client { return apicheck.Client(t, c) }
	p.Bases = r.Bases()
	report := must.Get(buyers.Run(t.Context(), p))(t)
	for _, result := range report.Results {
		if result.Outcome == buyer.Won {
			require.Equal(t, "created", result.Status)
		}
	}
	return settled(t, r, goods, report)
}

// settled waits until all orders of a rush are written, and checks that each 202 has its order.
func settled(
	t *testing.T, r *installation.Installation, goods string, report buyers.Report,
) rushed {
	got := rushed{report, r.Drained(t, goods, time.Minute), r.Facts(t, goods)}
	sns := r.OrderSns(t, goods)
	for _, result := range report.Results {
		for _, accepted := range result.Accepted {
			require.True(t, sns[accepted.OrderSn],
				"buyer %d was answered 202 for %s, which MySQL does not have",
				result.BuyerID, accepted.OrderSn)
		}
	}
	return got
}

// requireSoldOut checks that no answer was 503, that everything was sold, and that all servers have
// the same numbers.
func (r rushed) requireSoldOut(t *testing.T, units, orders, winners int64) {
	require.Zero(t, r.report.Sum(func(result buyers.Result) int {
		return result.Unavailable
	}), "answers of 503")
	r.requireSoldOutDespite503(t, units, orders, winners)
}

// requireSoldOutDespite503 is requireSoldOut for a rush in which buyers may have been answered 503.
func (r rushed) requireSoldOutDespite503(t *testing.T, units, orders, winners int64) {
	require.Zero(t, r.report.Sum(func(result buyers.Result) int {
		return result.ServerErrors
	}), "answers of 5xx")
	require.Zero(t, r.report.Count(buyer.GaveUp))
	require.True(t, r.ledger.Balanced, "%+v", r.ledger)
	require.Equal(t, []int64{0, 0, units},
		[]int64{r.ledger.Available, r.ledger.Pending, r.ledger.Sold})
	require.Equal(t, []int64{0, units}, []int64{r.ledger.Database.Stock, r.ledger.Database.Active})
	require.Equal(t, installation.Facts{
		Total: units, Orders: orders, Units: units, Buyers: winners, Held: units,
		MostHeld: r.facts.MostHeld,
	}, r.facts)
}

// sellOut sells a sale out to three times as many buyers.
func sellOut(t *testing.T, r *installation.Installation) (goods string) {
	got := r.PutUp(t, 200, 1)
	sold := rushFor(t, r, got, buyers.Plan{Buyers: 600, Concurrency: 50})
	require.Equal(t, 200, sold.report.Count(buyer.Won))
	return got
}
