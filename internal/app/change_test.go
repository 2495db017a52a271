package app_test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"flashsale.dev/seckill/internal/app"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/inventory"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/salechange"
	"flashsale.dev/seckill/internal/testing/must"
)

// TestSaleChange_AppliesWhileItSells changes the limit, the stock and the end of an ongoing sale.
// Each change applies to the next purchase.
func TestSaleChange_AppliesWhileItSells(t *testing.T) {
	h := open(t)
	goods := h.exposed("3", "1")
	one := "/admin/sales/" + goods
	h.buys(buyer(1), goods, "1")
	require.Equal(t, "LIMIT_REACHED", h.tries(buyer(1), goods, "1").Reason)

	h.does(merchant(), "PATCH", one, `{"perBuyerLimit":3,"stockDelta":2}`)
	h.exact(goods, 5, 4, 1)
	h.buys(buyer(1), goods, "2")
	h.exact(goods, 5, 2, 3)

	r := h.refuses("CONFLICT", merchant(), "PATCH", one, `{"stockDelta":-3}`)
	require.JSONEq(t, `{"available":2}`, string(r.Data))
	h.exact(goods, 5, 2, 3)
	h.does(merchant(), "PATCH", one, `{"stockDelta":-2}`)
	h.exact(goods, 3, 0, 3)
	require.Equal(t, "SOLD_OUT", h.tries(buyer(2), goods, "1").Reason)

	h.does(merchant(), "PATCH", one,
		`{"endAt":"`+time.Now().Add(-time.Second).UTC().Format(time.RFC3339)+`"}`)
	require.Equal(t, "ENDED", h.tries(buyer(2), goods, "1").Reason)
	h.refuses("CONFLICT", merchant(), "PATCH", one, `{"title":"x"}`)
}

// TestSoldOut_PathsKeepTheirOrderOrBuyAReturnedUnit checks that a sold-out sale refuses a buyer
// again and again, while the path of an order still returns that order. A path that was refused
// buys a unit that has returned.
func TestSoldOut_PathsKeepTheirOrderOrBuyAReturnedUnit(t *testing.T) {
	h := open(t)
	goods := h.exposed("1", "1")
	pathOf := func(who seckill.Actor) string {
		return dataOf[struct{ RandomPath string }](t,
			h.does(who, "POST", "/randomPath?goodsId="+goods, "")).RandomPath
	}
	first, second := pathOf(buyer(1)), pathOf(buyer(2))
	sn := dataOf[struct{ OrderSn string }](t, h.takes(buyer(1), goods, "1", first)).OrderSn
	for range 3 {
		refusal := h.takes(buyer(2), goods, "1", second)
		require.Equal(t, "SOLD_OUT", refusal.Reason)
		require.JSONEq(t, `{"available":0}`, string(refusal.Data))
		require.Equal(t, "LIMIT_REACHED", h.takes(buyer(2), goods, "2", second).Reason)
		require.Equal(t, "BAD_PATH", h.takes(buyer(2), goods, "1", first).Reason)
		require.Equal(t, "FORBIDDEN", h.takes(merchant(), goods, "1", second).Reason)
		require.Equal(t, "BAD_REQUEST", h.takes(buyer(2), goods, "0", second).Reason)
		again := h.takes(buyer(1), goods, "1", first)
		require.Equal(t, http.StatusAccepted, again.Status, again.Body)
		require.Equal(t, sn, dataOf[struct{ OrderSn string }](t, again).OrderSn)
	}
	h.becomes(buyer(1), sn, "created")
	h.does(buyer(1), "POST", "/orders/"+sn+"/cancel", "")
	h.eventually(func() bool {
		return h.takes(buyer(2), goods, "1", second).Status == http.StatusAccepted
	}, "the returned unit was not sold")
	h.exact(goods, 1, 0, 1)
}

// TestStockCut_AmongBuyersIsExact runs stock cuts and purchases of the last units concurrently.
// Every unit is sold, cut or still available, and never two of these.
func TestStockCut_AmongBuyersIsExact(t *testing.T) {
	h := open(t)
	goods := h.exposed("40", "1")
	cuts := make([]bool, 10)
	var g errgroup.Group
	for i := range 40 {
		g.Go(func() error { h.tries(buyer(int64(i+1)), goods, "1"); return nil })
	}
	for i := range cuts {
		g.Go(func() error {
			cuts[i] = h.as(merchant(), "PATCH", "/admin/sales/"+goods, `{"stockDelta":-2}`,
				"Idempotency-Key", strconv.Itoa(i)).Status == 200
			return nil
		})
	}
	require.NoError(t, g.Wait())
	total := int64(40)
	for _, cut := range cuts {
		if cut {
			total -= 2
		}
	}
	h.eventually(func() bool {
		l := h.ledger(goods)
		return l.Pending == 0 && l.Balanced && l.Database.Stock == l.Available
	}, "the pending orders were not written")
	l := h.ledger(goods)
	require.Equal(t, total, l.Total)
	require.Equal(t, total, l.Available+l.Sold, fmt.Sprint(l))
}

// TestStockCut_LeftBehindIsFinished stops a stock cut after each of its steps, as a crash would.
// The change syncer completes the cut.
func TestStockCut_LeftBehindIsFinished(t *testing.T) {
	for name, asked := range map[string]bool{"before it asked Redis": false, "after": true} {
		t.Run(name, func(t *testing.T) {
			h := open(t)
			goods := h.exposed("10", "1")
			id, longAgo := h.id(goods), time.Now().Add(-time.Minute)
			b := must.Get(h.Store.Change(t.Context(), id, salechange.Change{StockDelta: -4},
				salechange.IdempotencyKey{}, longAgo))(t)
			if asked {
				moves := []order.StockMove{b.Cut.Move()}
				results := must.Get(h.RedisStore.Release(t.Context(), id, moves))(t)
				require.Equal(t, []order.MoveResult{order.MoveApplied}, results)
			}
			h.exact(goods, 6, 6, 0)
		})
	}
}

// TestStockCut_WithAnExternalIDOfAnotherSaleTakesNothing checks that a refused change takes no
// units from buyers, not even for a moment, and names the field.
func TestStockCut_WithAnExternalIDOfAnotherSaleTakesNothing(t *testing.T) {
	h := open(t)
	h.does(merchant(), "PATCH", "/admin/sales/"+h.draft("1", "1"), `{"externalId":"kettle"}`)
	goods := h.exposed("10", "1")
	r := h.refuses("CONFLICT", merchant(), "PATCH", "/admin/sales/"+goods,
		`{"stockDelta":-10,"externalId":"kettle"}`)
	require.JSONEq(t, `{"field":"externalId"}`, string(r.Data))
	n, _, err := h.Store.Unreleased(t.Context(), h.id(goods))
	require.NoError(t, err)
	require.Zero(t, n, "a cut was begun")
	h.exact(goods, 10, 10, 0)
	h.does(merchant(), "PATCH", "/admin/sales/"+goods, `{"stockDelta":-1,"externalId":"pot"}`)
	h.exact(goods, 9, 9, 0)
}

// closedMeanwhile is a database in which a sale is closed while Redis applies a stock cut.
type closedMeanwhile struct{ inventory.Store }

func (s closedMeanwhile) EndCut(
	ctx context.Context, c inventory.StockCut, result order.MoveResult, now time.Time,
) (inventory.StockCut, seckill.Sale, error) {
	if _, err := s.CloseSale(ctx, c.GoodsID, now); err != nil {
		return c, seckill.Sale{}, err
	}
	return s.Store.EndCut(ctx, c, result, now)
}

// TestStockCut_OfASaleThatClosesMeanwhileIsRefusedForThat checks that the refusal has the reason
// for which the cut was undone, and no count of units.
func TestStockCut_OfASaleThatClosesMeanwhileIsRefusedForThat(t *testing.T) {
	h := open(t)
	goods := h.exposed("10", "1")
	sales := app.NewServices(h.Parts, h.settings).Sales
	sales.Store = closedMeanwhile{sales.Store}
	_, err := sales.Change(t.Context(),
		seckill.Actor{ID: "70", Role: seckill.Merchant}, h.id(goods),
		salechange.Change{StockDelta: -4}, salechange.IdempotencyKey{})
	require.ErrorContains(t, err, "CONFLICT: the sale is closed")
	h.exact(goods, 10, 10, 0)
}

// lostAnswer is a database that commits the first change or deletion, and whose answer is lost.
type lostAnswer struct {
	inventory.Store
	lost bool
}

func (s *lostAnswer) Change(
	ctx context.Context, goodsID int64, c salechange.Change,
	key salechange.IdempotencyKey, now time.Time,
) (inventory.BegunChange, error) {
	b, err := s.Store.Change(ctx, goodsID, c, key, now)
	if err == nil && !s.lost {
		s.lost = true
		return inventory.BegunChange{}, order.ErrTryAgain
	}
	return b, err
}

func (s *lostAnswer) DeleteDraft(
	ctx context.Context, goodsID int64, key salechange.IdempotencyKey, now time.Time,
) error {
	err := s.Store.DeleteDraft(ctx, goodsID, key, now)
	if err == nil && !s.lost {
		s.lost = true
		return order.ErrTryAgain
	}
	return err
}

// TestSaleChange_CountsOnceIfTheCommitsAnswerIsLost checks that a change of the stock without an
// Idempotency-Key, whose transaction the service repeats, adds or removes its units once.
func TestSaleChange_CountsOnceIfTheCommitsAnswerIsLost(t *testing.T) {
	h := open(t)
	goods := h.exposed("10", "1")
	total := int64(10)
	for _, delta := range []int64{5, -4} {
		sales := app.NewServices(h.Parts, h.settings).Sales
		sales.Store = &lostAnswer{Store: sales.Store}
		sale := must.Get(sales.Change(t.Context(), seckill.Actor{ID: "70", Role: seckill.Merchant},
			h.id(goods), salechange.Change{StockDelta: delta}, salechange.IdempotencyKey{}))(t)
		total += delta
		require.Equal(t, total, sale.Total)
		h.exact(goods, total, total, 0)
	}
}

// TestDraft_DeletedAlthoughTheCommitsAnswerIsLost checks that a deletion without an
// Idempotency-Key, whose transaction the service repeats, is not answered with NOT_FOUND.
func TestDraft_DeletedAlthoughTheCommitsAnswerIsLost(t *testing.T) {
	h := open(t)
	goods := h.draft("1", "1")
	sales := app.NewServices(h.Parts, h.settings).Sales
	sales.Store = &lostAnswer{Store: sales.Store}
	err := sales.Delete(t.Context(), merchant(), h.id(goods), salechange.IdempotencyKey{})
	require.NoError(t, err)
	h.refuses("NOT_FOUND", merchant(), "GET", "/admin/sales/"+goods, "")
}

// TestChangeSyncer_RepeatsWhatRedisMissed changes a sale only in MySQL, as if Redis was
// unavailable. The change syncer copies the changes to Redis.
func TestChangeSyncer_RepeatsWhatRedisMissed(t *testing.T) {
	h := open(t)
	goods := h.exposed("10", "1")
	id := h.id(goods)
	must.Get(h.Store.Change(t.Context(), id, salechange.Change{PerBuyerLimit: new(int64(4))},
		salechange.IdempotencyKey{}, time.Now()))(t)
	h.eventually(func() bool {
		v, err := h.RedisStore.View(t.Context(), id)
		return err == nil && v.PerBuyerLimit == 4
	}, "the syncer did not copy the limit")
	must.Get(h.Store.CloseSale(t.Context(), id, time.Now()))(t)
	h.eventually(func() bool {
		v, err := h.RedisStore.View(t.Context(), id)
		return err == nil && v.Status == seckill.Closed
	}, "the syncer did not close the sale")
}

// TestDraft_DeletionKeepsItsAuditLog checks that a draft's audit log records changes, and that a
// deleted draft is gone for its merchant.
func TestDraft_DeletionKeepsItsAuditLog(t *testing.T) {
	h := open(t)
	goods := h.draft("5", "1")
	one := "/admin/sales/" + goods
	h.does(merchant(), "PATCH", one, `{"title":"two kettles","price":0,"stockDelta":5}`)
	r := h.as(merchant(), "GET", one+"/audit", "")
	require.Contains(t, r.Body, `"actorId":"70","actorRole":"merchant","action":"change"`)
	require.Contains(t, r.Body, `"to":{"price":0,"stock":10,"title":"two kettles"}`)
	h.does(merchant(), "DELETE", one, "")
	h.refuses("NOT_FOUND", merchant(), "GET", one, "")
	f := salechange.AuditFilter{GoodsID: h.id(goods)}
	kept := must.Get(h.Store.AuditTrail(t.Context(), f, "", 10))(t)
	require.Len(t, kept, 3, "created, changed, deleted")
	require.Equal(t, salechange.ActDelete, kept[0].Action)
}

// deletedMeanwhile is a database in which a draft is deleted after it was read.
type deletedMeanwhile struct{ inventory.Store }

func (s deletedMeanwhile) Sale(ctx context.Context, goodsID int64) (seckill.Sale, error) {
	sale, err := s.Store.Sale(ctx, goodsID)
	if err == nil {
		err = s.DeleteDraft(ctx, goodsID, salechange.IdempotencyKey{}, time.Now())
	}
	return sale, err
}

// TestDraft_DeletedMeanwhileIsNotFound checks the refusal of a call that loses against a deletion.
func TestDraft_DeletedMeanwhileIsNotFound(t *testing.T) {
	h := open(t)
	sales, by := app.NewServices(h.Parts, h.settings).Sales, seckill.Actor{Role: seckill.Operator}
	sales.Store = deletedMeanwhile{sales.Store}
	for _, call := range []func(goodsID int64) error{
		func(id int64) error { _, err := sales.Expose(t.Context(), by, id); return err },
		func(id int64) error { _, err := sales.Close(t.Context(), by, id); return err },
		func(id int64) error {
			_, err := sales.Change(t.Context(), by, id, salechange.Change{StockDelta: 1},
				salechange.IdempotencyKey{})
			return err
		},
		func(id int64) error {
			return sales.Delete(t.Context(), by, id, salechange.IdempotencyKey{})
		},
	} {
		require.ErrorContains(t, call(h.id(h.draft("1", "1"))), "NOT_FOUND")
	}
}

// TestIdempotencyKey_FirstAnswerStands repeats a request with its key after a later change and
// after a deletion. The API returns the first response both times.
func TestIdempotencyKey_FirstAnswerStands(t *testing.T) {
	h := open(t)
	goods := h.draft("9", "2")
	one := "/admin/sales/" + goods
	first := h.does(merchant(), "PATCH", one,
		`{"rate":{"permitsPerSecond":0.01,"maxBurstSeconds":200}}`, "Idempotency-Key", "slow")
	h.does(merchant(), "PATCH", one, `{"rate":{"permitsPerSecond":50,"maxBurstSeconds":0.1}}`)
	again := func() reply {
		return h.as(merchant(), "PATCH", one,
			`{"rate":{"permitsPerSecond":0.01,"maxBurstSeconds":200}}`, "Idempotency-Key", "slow")
	}
	require.JSONEq(t, string(first.Data), string(again().Data))

	late := h.does(merchant(), "PATCH", one, `{"endAt":"2999-01-01T00:00:00Z"}`,
		"Idempotency-Key", "late")
	h.does(merchant(), "DELETE", one, "", "Idempotency-Key", "away")
	h.does(merchant(), "DELETE", one, "", "Idempotency-Key", "away") // the same response
	require.JSONEq(t, string(first.Data), string(again().Data))
	require.JSONEq(t, string(late.Data), string(h.does(merchant(), "PATCH", one,
		`{"endAt":"2999-01-01T00:00:00Z"}`, "Idempotency-Key", "late").Data))
	h.refuses("NOT_FOUND", merchant(), "DELETE", one, "")
	// The key belongs to another request.
	h.refuses("CONFLICT", merchant(), "DELETE", "/admin/sales/12345", "", "Idempotency-Key", "away")
	other := seckill.Actor{ID: "71", Role: seckill.Merchant}
	// Each owner has keys of its own.
	h.refuses("NOT_FOUND", other, "DELETE", one, "", "Idempotency-Key", "away")
	h.refuses("BAD_REQUEST", merchant(), "DELETE", one, "", "Idempotency-Key", "")
}
