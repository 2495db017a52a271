package check_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/loadgen/buyer"
	"flashsale.dev/seckill/internal/testing/buyers"
	"flashsale.dev/seckill/test/faults/check"
)

// start is the start of the tests' sale.
var start = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// soundHistory is a sale of three units in which every guarantee holds. Buyers 1 and 2 have one
// unit each, and repeated their path after the end.
func soundHistory() check.History {
	buys := func(id int64, paths int, path, sn string, statuses ...string) buyers.Result {
		first, repeated := start.Add(time.Second), start.Add(2*time.Hour)
		return buyers.Result{Result: buyer.Result{
			BuyerID: id, Paths: paths, Statuses: statuses, Accepted: []buyer.Accepted{
				{Path: path, OrderSn: sn, Sent: first, Received: first.Add(time.Second)},
				{Path: path, OrderSn: sn, Sent: repeated, Received: repeated},
			},
		}}
	}
	return check.History{
		Sale: check.Sale{
			Units: 3, Limit: 1, StartAt: start, EndAt: start.Add(time.Hour), Stock: 1, Total: 3,
		},
		Buyers: []buyers.Result{
			buys(1, 1, "p1", "a", "queued", "created"), buys(2, 2, "p2", "b", "created"),
			{Result: buyer.Result{BuyerID: 3, Paths: 1}},
		},
		Rows: []check.Row{
			{OrderSn: "a", BuyerID: 1, Quantity: 1, Status: "created"},
			{OrderSn: "b", BuyerID: 2, Quantity: 1, Status: "paid"},
		},
		Holdings: map[int64]int64{1: 1, 2: 1, 3: 0},
		Redis: check.Redis{
			Total: 3, Available: 1, Sold: 2, Balanced: true, Holdings: map[int64]int64{1: 1, 2: 1},
		},
	}
}

type history = check.History

// createdOrder adds a row to a history.
func createdOrder(buyer, quantity int64) func(*history) {
	return func(h *history) {
		row := check.Row{OrderSn: "c", BuyerID: buyer, Quantity: quantity, Status: "created"}
		h.Rows = append(h.Rows, row)
	}
}

// statuses replaces the statuses in the answers to buyer 1.
func statuses(list ...string) func(*history) {
	return func(h *history) { h.Buyers[0].Statuses = list }
}

func TestJudge_SoundHistoryHasNoViolation(t *testing.T) {
	require.Equal(t, check.Verdict{Orders: 2}, check.Judge(soundHistory(), check.Allowance{}))
}

func TestJudge_FindsEveryPlantedViolation(t *testing.T) {
	for name, c := range map[string]struct {
		rule  string
		plant func(h *history)
	}{
		"more sold than there is":    {"G1", createdOrder(3, 2)},
		"negative stock":             {"G1", func(h *history) { h.Sale.Stock = -1 }},
		"stock that does not add up": {"G1", func(h *history) { h.Sale.Stock = 0 }},
		"changed total":              {"G1", func(h *history) { h.Sale.Total = 4 }},
		"over the limit":             {"G2", createdOrder(2, 1)},
		"holding without an order":   {"G2", func(h *history) { h.Holdings[3] = 1 }},
		"order without its holding":  {"G2", func(h *history) { delete(h.Holdings, 1) }},
		"promise without a row":      {"G3", func(h *history) { h.Rows = h.Rows[1:] }},
		"promise of another's order": {"G3", func(h *history) { h.Rows[0].BuyerID = 3 }},
		"leaked units":               {"G4", func(h *history) { h.Redis.Available = 0 }},
		"too many units":             {"G4", func(h *history) { h.Redis.Sold = 3 }},
		"pending entry":              {"G4", func(h *history) { h.Redis.PendingEntries = 1 }},
		"pending units":              {"G4", func(h *history) { h.Redis.Pending = 1 }},
		"outbox entry":               {"G4", func(h *history) { h.Redis.OutboxEntries = 1 }},
		"queued message":             {"G4", func(h *history) { h.Queued = 1 }},
		"pending stock move":         {"G4", func(h *history) { h.PendingMoves = 1 }},
		"unbalanced ledger":          {"G4", func(h *history) { h.Redis.Balanced = false }},
		"holding that Redis kept":    {"G4", func(h *history) { h.Redis.Holdings[3] = 1 }},
		"dead letter in MySQL":       {"G4", func(h *history) { h.DeadLetters = []string{"a"} }},
		"dead letter in the broker":  {"G4", func(h *history) { h.DeadQueued = 1 }},
		"created and not in MySQL":   {"G5", func(h *history) { h.Rows = h.Rows[1:] }},
		"broken promise":             {"G5", func(h *history) { h.Rows[0].Status = "failed" }},
		"failed and in MySQL":        {"G5", statuses("failed")},
		"promised and not found":     {"G5", statuses("NOT_FOUND")},
		"cancelled and in MySQL not": {"G5", statuses("created", "cancelled")},
		"not cancelled, not expired": {"G5", statuses("created", "CONFLICT")},
		"sold after the end": {"G6", func(h *history) {
			h.Buyers[0].Accepted[0].Sent = h.Sale.EndAt
		}},
		"sold before the start": {"G6", func(h *history) {
			h.Buyers[0].Accepted[0].Received = start.Add(-1)
		}},
		"two orders for one path": {"G7", func(h *history) {
			h.Buyers[0].Accepted[1].OrderSn = "c"
		}},
		"one order for two paths": {"G7", func(h *history) {
			h.Buyers[0].Accepted[1].Path = "p9"
		}},
		"more orders than paths":    {"G7", createdOrder(1, 1)},
		"order of an unknown buyer": {"G7", createdOrder(9, 1)},
		"row twice": {"G7", func(h *history) {
			h.Rows = append(h.Rows, h.Rows[0])
		}},
		"server error":            {"HTTP", func(h *history) { h.Buyers[2].ServerErrors = 1 }},
		"503 without Retry-After": {"HTTP", func(h *history) { h.Buyers[2].NoRetryAfter = 1 }},
	} {
		t.Run(name, func(t *testing.T) {
			h := soundHistory()
			c.plant(&h)
			var rules []string
			for _, v := range check.Judge(h, check.Allowance{}).Violations {
				rules = append(rules, v.Rule)
			}
			require.Contains(t, rules, c.rule)
		})
	}
}

func TestJudge_CountsLostDoubledAndOversold(t *testing.T) {
	h := soundHistory()
	h.Rows = []check.Row{
		{OrderSn: "b", BuyerID: 2, Quantity: 1, Status: "created"},
		{OrderSn: "c", BuyerID: 2, Quantity: 1, Status: "created"},
		{OrderSn: "d", BuyerID: 2, Quantity: 4, Status: "created"},
	}
	v := check.Judge(h, check.Allowance{})
	got := []int64{int64(v.Orders), v.Lost, v.Doubled, v.Oversold}
	require.Equal(t, []int64{3, 1, 1, 3}, got)
}

func TestJudge_AllowsDeadLettersOfTheFault(t *testing.T) {
	h := soundHistory()
	h.DeadLetters = []string{""}
	require.Empty(t, check.Judge(h, check.Allowance{DeadLetters: 1}).Violations)
	require.NotEmpty(t, check.Judge(h, check.Allowance{}).Violations)
}

func TestJudge_AllowsCancellationAfterPaymentTimeout(t *testing.T) {
	h := soundHistory()
	h.Rows[0].Status = "expired"
	h.Sale.Stock, h.Redis.Available, h.Redis.Sold = 2, 2, 1
	delete(h.Holdings, 1)
	delete(h.Redis.Holdings, 1)
	h.Buyers[0].Statuses = []string{"created", "CONFLICT"}
	require.Empty(t, check.Judge(h, check.Allowance{}).Violations)
}

func TestJudge_AllowsBrokenPromiseThatBuyerWasAnswered(t *testing.T) {
	allow := check.Allowance{BrokenPromises: true}
	h := soundHistory()
	h.Rows, h.Buyers[0].Statuses = h.Rows[1:], []string{"queued", "failed"}
	h.Sale.Stock, h.Redis.Available, h.Redis.Sold = 2, 2, 1
	delete(h.Holdings, 1)
	delete(h.Redis.Holdings, 1)
	h.Final = map[string]string{"a": "failed"}
	require.Equal(t, check.Verdict{Orders: 1, Broken: 1}, check.Judge(h, allow))
	require.NotEmpty(t, check.Judge(h, check.Allowance{}).Violations)

	failed := check.Row{OrderSn: "a", BuyerID: 1, Quantity: 1, Status: "failed"}
	h.Rows = append(h.Rows, failed)
	require.Equal(t, check.Verdict{Orders: 1, Broken: 1}, check.Judge(h, allow))

	for _, answer := range []string{"", "queued", "NOT_FOUND"} {
		h.Final["a"] = answer
		v := check.Judge(h, allow)
		require.Equal(t, []int64{1, 0}, []int64{v.Lost, v.Broken}, "the last answer was %q", answer)
	}
}
