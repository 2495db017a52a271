package check_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/test/faults/check"
)

// noon is when the sale of the tests began.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// good is a sale of three units, of which buyers 1 and 2 have one each, in which nothing went wrong.
func good() check.History {
	heard := func(path, sn string) []check.Promise {
		return []check.Promise{
			{Path: path, OrderSn: sn, Asked: noon.Add(time.Second), At: noon.Add(2 * time.Second)},
			{Path: path, OrderSn: sn, Asked: noon.Add(2 * time.Hour), At: noon.Add(2 * time.Hour)}, // asked again after the end
		}
	}
	return check.History{
		Sale: check.Sale{Units: 3, Limit: 1, StartAt: noon, EndAt: noon.Add(time.Hour), Stock: 1, Total: 3},
		Buyers: []check.Buyer{
			{ID: 1, Paths: 1, Heard: heard("p1", "a"), Seen: []string{"queued", "created"}},
			{ID: 2, Paths: 2, Heard: heard("p2", "b"), Seen: []string{"created"}},
			{ID: 3, Paths: 1},
		},
		Rows: []check.Row{
			{OrderSn: "a", BuyerID: 1, Quantity: 1, Status: "created"},
			{OrderSn: "b", BuyerID: 2, Quantity: 1, Status: "paid"},
		},
		Held: map[int64]int64{1: 1, 2: 1, 3: 0}, RedisHeld: map[int64]int64{1: 1, 2: 1},
		Redis: check.Redis{Total: 3, Available: 1, Sold: 2, Balanced: true},
	}
}

func TestAGoodHistoryBreaksNothing(t *testing.T) {
	v := check.Judge(good(), check.Expect{})
	require.Empty(t, v.Violations)
	require.Equal(t, check.Verdict{Orders: 2}, v)
}

func TestEveryPlantedViolationIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		rule  string
		plant func(h *check.History)
	}{
		"more sold than there is": {"G1", func(h *check.History) {
			h.Rows = append(h.Rows, check.Row{OrderSn: "c", BuyerID: 3, Quantity: 2, Status: "created"})
		}},
		"a stock below zero":           {"G1", func(h *check.History) { h.Sale.Stock = -1 }},
		"a stock that does not add up": {"G1", func(h *check.History) { h.Sale.Stock = 0 }},
		"a total that changed":         {"G1", func(h *check.History) { h.Sale.Total = 4 }},
		"over the limit": {"G2", func(h *check.History) {
			h.Rows = append(h.Rows, check.Row{OrderSn: "c", BuyerID: 2, Quantity: 1, Status: "created"})
		}},
		"a holding without an order":     {"G2", func(h *check.History) { h.Held[3] = 1 }},
		"an order without its holding":   {"G2", func(h *check.History) { delete(h.Held, 1) }},
		"a 202 without a row":            {"G3", func(h *check.History) { h.Rows = h.Rows[1:] }},
		"a 202 for another's order":      {"G3", func(h *check.History) { h.Rows[0].BuyerID = 3 }},
		"units leaked":                   {"G4", func(h *check.History) { h.Redis.Available = 0 }},
		"units from nowhere":             {"G4", func(h *check.History) { h.Redis.Sold = 3 }},
		"something still pending":        {"G4", func(h *check.History) { h.Redis.PendingEntries = 1 }},
		"units still pending":            {"G4", func(h *check.History) { h.Redis.Pending = 1 }},
		"something in the outbox":        {"G4", func(h *check.History) { h.Redis.OutboxEntries = 1 }},
		"something in a queue":           {"G4", func(h *check.History) { h.Queued = 1 }},
		"a release that nobody gave":     {"G4", func(h *check.History) { h.MovesNotGiven = 1 }},
		"a ledger that is not balanced":  {"G4", func(h *check.History) { h.Redis.Balanced = false }},
		"a holding that Redis kept":      {"G4", func(h *check.History) { h.RedisHeld[3] = 1 }},
		"a good order in dead letters":   {"G4", func(h *check.History) { h.DeadLetters = []string{"a"} }},
		"a dead letter in the broker":    {"G4", func(h *check.History) { h.DeadQueued = 1 }},
		"a created that MySQL lacks":     {"G5", func(h *check.History) { h.Rows = h.Rows[1:] }},
		"a broken promise":               {"G5", func(h *check.History) { h.Rows[0].Status = "failed" }},
		"a failed that is written":       {"G5", func(h *check.History) { h.Buyers[0].Seen = []string{"failed"} }},
		"a promise that nobody knows of": {"G5", func(h *check.History) { h.Buyers[0].Seen = []string{"NOT_FOUND"} }},
		"a cancelled that is not":        {"G5", func(h *check.History) { h.Buyers[0].Seen = []string{"created", "cancelled"} }},
		"sold after the end":             {"G6", func(h *check.History) { h.Buyers[0].Heard[0].Asked = h.Sale.EndAt }},
		"sold before the start":          {"G6", func(h *check.History) { h.Buyers[0].Heard[0].At = noon.Add(-1) }},
		"two orders for one path":        {"G7", func(h *check.History) { h.Buyers[0].Heard[1].OrderSn = "c" }},
		"one order for two paths":        {"G7", func(h *check.History) { h.Buyers[0].Heard[1].Path = "p9" }},
		"more orders than paths": {"G7", func(h *check.History) {
			h.Rows = append(h.Rows, check.Row{OrderSn: "c", BuyerID: 1, Quantity: 1, Status: "created"})
		}},
		"an order nobody asked for": {"G7", func(h *check.History) {
			h.Rows = append(h.Rows, check.Row{OrderSn: "c", BuyerID: 9, Quantity: 1, Status: "created"})
		}},
		"a row twice":                  {"G7", func(h *check.History) { h.Rows = append(h.Rows, h.Rows[0]) }},
		"a fault of the server":        {"HTTP", func(h *check.History) { h.Buyers[2].Faults = 1 }},
		"a 503 that does not say when": {"HTTP", func(h *check.History) { h.Buyers[2].Unsaid = 1 }},
	} {
		t.Run(name, func(t *testing.T) {
			h := good()
			c.plant(&h)
			var rules []string
			for _, v := range check.Judge(h, check.Expect{}).Violations {
				rules = append(rules, v.Rule)
			}
			require.Contains(t, rules, c.rule)
		})
	}
}

func TestTheVerdictCounts(t *testing.T) {
	h := good()
	h.Rows = []check.Row{
		{OrderSn: "b", BuyerID: 2, Quantity: 1, Status: "created"},
		{OrderSn: "c", BuyerID: 2, Quantity: 1, Status: "created"},
		{OrderSn: "d", BuyerID: 2, Quantity: 4, Status: "created"},
	}
	v := check.Judge(h, check.Expect{})
	require.Equal(t, []int64{3, 1, 1, 3}, []int64{int64(v.Orders), v.Lost, v.Doubled, v.Oversold})
}

func TestWhatAHarmMayDo(t *testing.T) {
	h := good()
	h.DeadLetters = []string{""}
	require.Empty(t, check.Judge(h, check.Expect{DeadLetters: 1}).Violations)

	h = good()
	h.Rows, h.Buyers[0].Seen = h.Rows[1:], []string{"queued", "failed"}
	h.Sale.Stock, h.Redis.Available, h.Redis.Sold = 2, 2, 1
	delete(h.Held, 1)
	delete(h.RedisHeld, 1)
	h.Final = map[string]string{"a": "failed"}
	require.Equal(t, check.Verdict{Orders: 1, Broken: 1}, check.Judge(h, check.Expect{MayBreak: true}))
	require.NotEmpty(t, check.Judge(h, check.Expect{}).Violations, "only where a promise may be broken")
	h.Rows = append(h.Rows, check.Row{OrderSn: "a", BuyerID: 1, Quantity: 1, Status: "failed"})
	require.Equal(t, check.Verdict{Orders: 1, Broken: 1}, check.Judge(h, check.Expect{MayBreak: true}))
	for _, said := range []string{"", "queued", "NOT_FOUND"} {
		h.Final["a"] = said
		v := check.Judge(h, check.Expect{MayBreak: true})
		require.Equal(t, []int64{1, 0}, []int64{v.Lost, v.Broken}, "a broken promise must be told")
	}
}
