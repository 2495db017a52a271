package verdict

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"flashsale.dev/seckill/internal/loadgen"
	"flashsale.dev/seckill/internal/loadgen/apiclient"
	"flashsale.dev/seckill/internal/loadgen/buyer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// api serves the state of an API after a load. Tokens are buyer ids; "0" is the merchant's.
type api struct {
	ledger apiclient.Ledger
	orders []listedOrder            // the sale's list
	lists  map[string][]listedOrder // a buyer's own list, if it differs from the sale's
	single map[string]string        // statuses of orders that are in no list
	before chan apiclient.Ledger    // earlier ledgers, each read once
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	who := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch {
	case strings.HasSuffix(r.URL.Path, "/ledger"):
		select {
		case l := <-a.before:
			answer(w, 200, l)
		default:
			answer(w, 200, a.ledger)
		}
	case strings.HasPrefix(r.URL.Path, "/admin/"):
		a.page(w, r, a.orders)
	case r.URL.Path == "/orders":
		list, own := a.lists[who]
		if !own {
			for _, o := range a.orders {
				if o.BuyerID == who {
					list = append(list, o)
				}
			}
		}
		a.page(w, r, list)
	default:
		sn := strings.TrimPrefix(r.URL.Path, "/orders/")
		if status, known := a.single[sn]; known {
			answer(w, 200, listedOrder{OrderSn: sn, Status: status})
			return
		}
		answer(w, 404, nil)
	}
}

// page returns pages of two orders.
func (a *api) page(w http.ResponseWriter, r *http.Request, list []listedOrder) {
	from, _ := strconv.Atoi(r.URL.Query().Get("cursor"))
	page := map[string]any{"items": list[from:min(len(list), from+2)], "nextCursor": nil}
	if from+2 < len(list) {
		page["nextCursor"] = strconv.Itoa(from + 2)
	}
	answer(w, 200, page)
}

func answer(w http.ResponseWriter, status int, data any) {
	text, _ := json.Marshal(data)
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"code": %d, "reason": "SAID", "data": %s}`, status, text)
}

// right returns a load of five buyers with three purchases, and an API that agrees with it.
func right() (*api, loadgen.Result) {
	line := func(sn, buyer string) listedOrder {
		return listedOrder{
			OrderSn: sn, Status: "created", GoodsID: "9", BuyerID: buyer, Quantity: 1,
		}
	}
	a := &api{
		ledger: apiclient.Ledger{Total: 3, Sold: 3, Balanced: true},
		orders: []listedOrder{line("a", "1"), line("b", "2"), line("c", "3")},
		lists:  map[string][]listedOrder{}, single: map[string]string{},
	}
	a.ledger.Database.Active = 3
	return a, loadgen.Result{
		Outcomes: map[loadgen.Kind]map[buyer.Outcome]int{
			loadgen.Polite: {buyer.Won: 3, buyer.SoldOut: 2},
		},
		Holders: []loadgen.Holder{
			{BuyerID: 1, OrderSns: []string{"a"}, Quantity: 1},
			{BuyerID: 2, OrderSns: []string{"b"}, Quantity: 1},
			{BuyerID: 3, OrderSns: []string{"c"}, Quantity: 1},
		},
	}
}

// nothingSold returns a load in which all five buyers have the same outcome, and an API that sold
// nothing.
func nothingSold(o buyer.Outcome) (api, loadgen.Result) {
	a := api{ledger: apiclient.Ledger{Total: 3, Available: 3, Balanced: true}}
	a.ledger.Database.Stock = 3
	return a, loadgen.Result{
		Outcomes: map[loadgen.Kind]map[buyer.Outcome]int{loadgen.Polite: {o: 5}},
	}
}

func checked(t *testing.T, a *api, r loadgen.Result) Verdict {
	t.Helper()
	server := httptest.NewServer(a)
	defer server.Close()
	httpClient := apiclient.NewHTTP(4)
	defer httpClient.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	return Check(ctx, Case{
		Plan: loadgen.Plan{
			GoodsID: "9", Bases: []string{server.URL},
			Token: func(id int64) (string, error) { return fmt.Sprint(id), nil },
		},
		Result: r, Merchant: apiclient.Client{Base: server.URL, Token: "0", HTTP: httpClient},
		Stock: 3, Limit: 1, Exclusive: true,
	})
}

func TestCheck_CorrectAPIPasses(t *testing.T) {
	a, r := right()
	v := checked(t, a, r)
	require.True(t, v.OK, "%v", v.Differences)
	require.Equal(t, 3, v.Promised)
	require.Equal(t, map[string]int{"created": 3}, v.Orders)
	for _, rule := range v.Rules {
		require.True(t, rule.OK, rule.Name)
	}
}

// TestCheck_FindsEachPlantedDifference plants one difference at a time. The rule for that
// difference must fail.
func TestCheck_FindsEachPlantedDifference(t *testing.T) {
	for name, c := range map[string]struct {
		plant func(a *api, r *loadgen.Result)
		rule  string
	}{
		"an order is lost": {func(a *api, _ *loadgen.Result) {
			a.orders = a.orders[:2]
			a.ledger.Sold, a.ledger.Available, a.ledger.Database.Active, a.ledger.Database.Stock = 2, 1, 2, 1
		}, ruleLost},
		"an order is in the sale's list and not in its buyer's": {func(a *api, _ *loadgen.Result) {
			a.lists["2"] = []listedOrder{}
		}, ruleLost},
		"an order is in its buyer's list and not in the sale's": {func(a *api, _ *loadgen.Result) {
			a.lists["2"] = a.orders[1:2:2]
			a.orders = slices.Delete(slices.Clone(a.orders), 1, 2)
		}, ruleLost},
		"an order is queued for ever": {func(a *api, _ *loadgen.Result) {
			a.orders[1].Status = "queued"
		}, ruleFinal},
		"an accepted order failed": {func(a *api, _ *loadgen.Result) {
			a.orders[1].Status = "failed"
		}, ruleFailed},
		"an accepted order failed, unlisted": {func(a *api, _ *loadgen.Result) {
			a.lists["2"], a.single["b"] = []listedOrder{}, "failed"
		}, ruleFailed},
		"an order is written twice": {func(a *api, _ *loadgen.Result) {
			a.orders = append(a.orders, a.orders[1])
		}, ruleDouble},
		"one order for two buyers": {func(_ *api, r *loadgen.Result) {
			r.Holders[1].OrderSns = []string{"a"}
		}, ruleDouble},
		"two numbers for one path": {func(_ *api, r *loadgen.Result) {
			r.Holders[1].Doubled = true
		}, ruleDouble},
		"a buyer got two": {func(a *api, r *loadgen.Result) {
			a.orders[2].BuyerID = "2"
			r.Holders = r.Holders[:2]
			r.Holders[1].OrderSns = []string{"b", "c"}
		}, ruleLimit},
		"one more was sold than there was": {func(a *api, _ *loadgen.Result) {
			a.ledger.Total = 2
		}, ruleStock},
		"one more was promised than there was": {func(_ *api, r *loadgen.Result) {
			r.Holders = append(r.Holders,
				loadgen.Holder{BuyerID: 4, OrderSns: []string{"d"}, Quantity: 1})
		}, ruleStock},
		"one more was sold, and the ledger's total grew": {func(a *api, r *loadgen.Result) {
			a.orders = append(a.orders, listedOrder{
				OrderSn: "d", Status: "created", GoodsID: "9", BuyerID: "4", Quantity: 1,
			})
			r.Holders = append(r.Holders,
				loadgen.Holder{BuyerID: 4, OrderSns: []string{"d"}, Quantity: 1})
			a.ledger.Total, a.ledger.Sold, a.ledger.Database.Active = 4, 4, 4
		}, ruleStock},
		"the ledger is empty": {func(a *api, _ *loadgen.Result) {
			a.ledger = apiclient.Ledger{Balanced: true}
		}, ruleStock},
		"an order is another buyer's in the sale's list": {func(a *api, _ *loadgen.Result) {
			a.lists["2"], a.lists["3"] = a.orders[1:2:2], a.orders[2:3:3]
			a.orders = slices.Clone(a.orders)
			a.orders[1].BuyerID = "3"
		}, ruleDouble},
		"an order is another buyer's in its buyer's list": {func(a *api, _ *loadgen.Result) {
			a.lists["2"] = slices.Clone(a.orders[1:2])
			a.lists["2"][0].BuyerID = "3"
		}, ruleDouble},
		"the lists disagree about a quantity": {func(a *api, _ *loadgen.Result) {
			a.lists["2"] = a.orders[1:2:2]
			a.orders = slices.Clone(a.orders)
			a.orders[1].Quantity = 2
			a.ledger.Sold, a.ledger.Total, a.ledger.Database.Active = 4, 4, 4
		}, ruleLedger},
		"nobody cancelled a cancelled order": {func(a *api, _ *loadgen.Result) {
			a.orders[2].Status = "cancelled"
			a.ledger.Sold, a.ledger.Available, a.ledger.Database.Active, a.ledger.Database.Stock = 2, 1, 2, 1
		}, ruleFailed},
		"an order has no known status": {func(a *api, _ *loadgen.Result) {
			a.orders[2].Status = "lost"
			a.ledger.Sold, a.ledger.Available, a.ledger.Database.Active, a.ledger.Database.Stock = 2, 1, 2, 1
		}, ruleFailed},
		"the stock is below zero": {func(a *api, _ *loadgen.Result) {
			a.ledger.Database.Stock = -1
		}, ruleStock},
		"an order has no 202": {func(a *api, _ *loadgen.Result) {
			a.orders = append(a.orders, listedOrder{
				OrderSn: "x", Status: "created", GoodsID: "9", BuyerID: "5", Quantity: 1,
			})
		}, ruleUnreported},
		"a winner has another order": {func(_ *api, r *loadgen.Result) {
			r.Holders[0].OrderSns = nil
		}, ruleUnreported},
		"the ledger counts one less": {func(a *api, _ *loadgen.Result) {
			a.ledger.Sold, a.ledger.Available = 2, 1
		}, ruleLedger},
		"the ledger does not balance": {func(a *api, _ *loadgen.Result) {
			a.ledger.Balanced = false
		}, ruleLedger},
		"the database counts one less": {func(a *api, _ *loadgen.Result) {
			a.ledger.Database.Active = 2
		}, ruleLedger},
		"an order is of the wrong amount": {func(a *api, _ *loadgen.Result) {
			a.orders[0].Quantity = 2
		}, ruleLedger},
		"SOLD_OUT came too early": {func(a *api, _ *loadgen.Result) {
			a.ledger.Total, a.ledger.Available, a.ledger.Database.Stock = 4, 1, 1
		}, ruleSoldOut},
		"SOLD_OUT is the only answer": {func(a *api, r *loadgen.Result) {
			*a, *r = nothingSold(buyer.SoldOut)
		}, ruleSoldOut},
		"every buyer is refused": {func(a *api, r *loadgen.Result) {
			*a, *r = nothingSold(buyer.Refused)
		}, ruleSoldOut},
		"every call fails": {func(a *api, r *loadgen.Result) {
			*a, *r = nothingSold(buyer.GaveUp)
			r.Holders = []loadgen.Holder{{BuyerID: 1, Quantity: 1, Uncertain: true}}
		}, ruleSoldOut},
		"a hostile call succeeded": {func(_ *api, r *loadgen.Result) {
			r.Breaches = []string{"spy"}
		}, ruleHostile},
		"the sale never drains": {func(a *api, _ *loadgen.Result) {
			a.ledger.Pending, a.ledger.Sold = 1, 2
		}, ruleRead},
		"another goods' order is taken for this one's": {func(a *api, _ *loadgen.Result) {
			a.lists["2"] = []listedOrder{{OrderSn: "b", GoodsID: "8"}}
		}, ruleLost},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, r := right()
			c.plant(a, &r)
			v := checked(t, a, r)
			require.False(t, v.OK)
			require.NotEmpty(t, v.Differences)
			i := slices.IndexFunc(v.Rules, func(rule Rule) bool { return rule.Name == c.rule })
			require.False(t, v.Rules[i].OK, "found by %v", v.Differences)
		})
	}
}

// TestCheck_OrderOfUncertainBuyerIsNoDifference checks a buyer whose connection failed. That buyer
// may have an order without a 202.
func TestCheck_OrderOfUncertainBuyerIsNoDifference(t *testing.T) {
	a, r := right()
	r.Holders[2] = loadgen.Holder{BuyerID: 3, Quantity: 1, Uncertain: true}
	v := checked(t, a, r)
	require.True(t, v.OK, "%v", v.Differences)
	require.Equal(t, []int{1, 2}, []int{v.Found, v.Promised})
}

// TestCheck_ReleasedUnitsMayBeLeft checks that units of expired orders may be available at the end.
func TestCheck_ReleasedUnitsMayBeLeft(t *testing.T) {
	a, r := right()
	a.orders[2].Status = "expired"
	a.ledger.Sold, a.ledger.Available, a.ledger.Database.Active, a.ledger.Database.Stock = 2, 1, 2, 1
	v := checked(t, a, r)
	require.True(t, v.OK, "%v", v.Differences)
}

// TestReadWithRetry_ErrorHasTheLastAnswer reads from an API that refuses, and then does not answer.
func TestReadWithRetry_ErrorHasTheLastAnswer(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 120*time.Millisecond)
	defer cancel()
	first := true
	_, err := readWithRetry(ctx, func() (*http.Response, error) {
		if first {
			first = false
			return &http.Response{StatusCode: 429, Body: io.NopCloser(strings.NewReader(
				`{"code":888,"reason":"RATE_LIMITED","message":"slow down"}`))}, nil
		}
		<-ctx.Done()
		return nil, ctx.Err()
	})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "status 429 RATE_LIMITED: slow down")
	require.NotContains(t, err.Error(), "\n", "the report has a line for each difference")
}

// TestCheck_OrderMayExpireBetweenTwoReads lets an order expire after the ledger was read. If it had
// lost its unit instead, the later ledger would not have it.
func TestCheck_OrderMayExpireBetweenTwoReads(t *testing.T) {
	t.Parallel()
	for name, available := range map[string]int64{"expired": 1, "lost": 0} {
		a, r := right()
		a.orders[2].Status = "expired"
		a.before = make(chan apiclient.Ledger, 1)
		a.before <- a.ledger
		a.ledger.Sold, a.ledger.Available = 2, available
		a.ledger.Database.Active, a.ledger.Database.Stock = 2, 1
		v := checked(t, a, r)
		require.Equal(t, available == 1, v.OK, "%s: %v", name, v.Differences)
	}
}

func TestAddDifference_CountsBeyondTheBound(t *testing.T) {
	v := newVerdict(false)
	for i := range 200 {
		v.addDifference(ruleLost, "%d", i)
	}
	require.Len(t, v.Differences, maxDifferences)
	require.Equal(t, 150, v.More)
}
