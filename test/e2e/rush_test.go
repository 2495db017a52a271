package e2e

import (
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/httpapi/spectest"
	"flashsale.dev/seckill/internal/loadgen/apiclient"
	"flashsale.dev/seckill/internal/loadgen/buyer"
	"flashsale.dev/seckill/internal/testenv"
	"flashsale.dev/seckill/test/rig"
)

var suite = testenv.NewSuite()

func TestMain(m *testing.M) { os.Exit(rig.Around(m, suite)) }

// rushed is a rush that is over and drained.
type rushed struct {
	report buyer.Report
	ledger apiclient.Ledger
	facts  rig.Facts
}

// rushOn lets buyers rush a new sale over all of the rig's APIs, and waits until everything is written.
func rushOn(t *testing.T, r *rig.Rig, units, limit int64, p buyer.Plan) rushed {
	t.Helper()
	return rushFor(t, r, r.PutUp(t, units, limit), p)
}

// rushFor is rushOn with a sale that is there. Buyers ask again where their connection breaks, as a server that closes an idle one may have
// it: a POST is not sent twice by itself.
func rushFor(t *testing.T, r *rig.Rig, goods string, p buyer.Plan) rushed {
	t.Helper()
	p.GoodsID, p.Token, p.Base, p.RetryErrors = goods, r.BuyerToken, "", true
	p.WrapClient = func(c *http.Client) *http.Client { return spectest.Client(t, c) }
	for i := range r.APIs {
		p.Bases = append(p.Bases, r.Base(i))
	}
	report, err := buyer.Run(t.Context(), p)
	require.NoError(t, err)
	ledger := r.Drained(t, goods, time.Minute)
	facts := r.Facts(t, goods)
	sns := r.OrderSns(t, goods)
	for _, told := range report.Results {
		if told.Outcome == buyer.Won {
			require.True(t, sns[told.OrderSn], "buyer %d was told 202 for %s, which MySQL does not have", told.BuyerID, told.OrderSn)
			require.Equal(t, "created", told.Status)
		}
	}
	return rushed{report, ledger, facts}
}

// exact checks that everything was sold and every place says the same.
func (r rushed) exact(t *testing.T, units, orders, buyers int64) {
	t.Helper()
	require.Zero(t, r.report.Sum(func(told buyer.Result) int { return told.Unavailable }), "answers of 503")
	r.gone(t, units, orders, buyers)
}

// gone is exact, where buyers may have been told to come again.
func (r rushed) gone(t *testing.T, units, orders, buyers int64) {
	t.Helper()
	require.Zero(t, r.report.Sum(func(told buyer.Result) int { return told.ServerErrors }), "answers of 5xx")
	require.Zero(t, r.report.Count(buyer.GaveUp))
	require.True(t, r.ledger.Balanced, "%+v", r.ledger)
	require.Equal(t, []int64{0, 0, units}, []int64{r.ledger.Available, r.ledger.Pending, r.ledger.Sold})
	require.Equal(t, []int64{0, units}, []int64{r.ledger.Database.Stock, r.ledger.Database.Active})
	require.Equal(t, rig.Facts{
		Total: units, Orders: orders, Units: units, Buyers: buyers, Held: units, MostHeld: r.facts.MostHeld,
	}, r.facts)
}

func TestAThousandUnitsForFiveThousandBuyers(t *testing.T) {
	r := rig.Start(t, suite, rig.Options{APIs: 2, Consumers: 2})
	got := rushOn(t, r, 1000, 1, buyer.Plan{Buyers: 5000, Concurrency: 200})
	got.exact(t, 1000, 1000, 1000)
	require.EqualValues(t, 1, got.facts.MostHeld)
	t.Logf("5,000 buyers in %s", got.report.Took)
}

func TestEachBuyerAsksFiveTimesAtOnce(t *testing.T) {
	r := rig.Start(t, suite, rig.Options{APIs: 2, Consumers: 2})
	got := rushOn(t, r, 1000, 1, buyer.Plan{Buyers: 5000, Concurrency: 40, ParallelPurchases: 5})
	got.exact(t, 1000, 1000, 1000)
	require.EqualValues(t, 1, got.facts.MostHeld)
}

func TestQuantityThreeOfALimitOfFive(t *testing.T) {
	r := rig.Start(t, suite, rig.Options{APIs: 2, Consumers: 2})
	got := rushOn(t, r, 999, 5, buyer.Plan{Buyers: 5000, Concurrency: 100, Quantity: 3, ParallelPurchases: 2})
	got.exact(t, 999, 333, 333)
	require.EqualValues(t, 3, got.facts.MostHeld)
}

func TestEveryMessageDeliveredTwice(t *testing.T) {
	r := rig.Start(t, suite, rig.Options{APIs: 2, Consumers: 2})
	doubled := r.DoubleMessages(t)
	got := rushOn(t, r, 1000, 1, buyer.Plan{Buyers: 5000, Concurrency: 200})
	got.exact(t, 1000, 1000, 1000)
	require.Positive(t, doubled.Load(), "no message was doubled")
}
