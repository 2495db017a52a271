package sqlstore

import (
	"context"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/payment"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/salechange"
	"flashsale.dev/seckill/internal/testing/must"
)

// crossShardMethods are the calls that no single shard can answer, and how they bear it where the
// goods live on several (docs/how-to/scale.md, "MySQL"). None is on the way of a purchase.
func crossShardMethods() map[string]string {
	const scan = "a scan of the background work, each second or seldomer: an index on each shard, merged"
	return map[string]string{
		"OrdersOf":         "a buyer's own list: an index on each shard, merged; or a lookup by buyer_id",
		"SalesOf":          "a merchant's own list: an index on each shard, merged",
		"ExposedSales":     "the catalog: once a second for each node and page, merged",
		"LiveGoods":        scan,
		"OverBefore":       scan,
		"RetiredBetween":   scan,
		"UnreleasedMoves":  scan,
		"OpenCuts":         scan,
		"DueRefunds":       scan,
		"DeadLetters":      "the operators' list: by primary key on each shard, merged",
		"CountDeadLetters": scan,
		"DeadLetter":       "an operator reads one: a lookup by id, or all shards",
		"RemoveDeadLetter": "an operator resolves one: the same",
		"Answered":         "by the asker: the keys live on shards of their own (actor_id)",
		"ForgetKeys":       "once a minute, on each shard of the keys",
		"CreateSale":       "the key of the request lives by actor_id; all else by the goods",
		"Change":           "the same",
		"DeleteDraft":      "the same",
		"EndCut":           "the same",
	}
}

// keysOnly are those of asksAll that may leave out the goods only where they touch the requests'
// keys.
func keysOnly() []string { return []string{"CreateSale", "Change", "DeleteDraft", "EndCut"} }

// With shards chosen by goods_id each statement then goes to one shard, and a transaction stays
// there.
func TestStatements_CarryTheShardKey(t *testing.T) {
	for _, d := range databases[1:] {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			rec := &recorder{}
			s := must.Get(Open(t.Context(), d.dsn(t), Options{wrap: rec.wrap}))(t)
			t.Cleanup(func() { require.NoError(t, s.Close()) })
			require.NoError(t, s.Migrate(t.Context()))
			called := callEveryMethod(t, fixture{s, t}, rec)
			requireAllCalled(t, called, rec)
			for step, texts := range rec.texts {
				for _, text := range texts {
					requireSharded(t, step, text)
					require.NotRegexp(t, unsupported, text, step)
				}
			}
		})
	}
}

// requireAllCalled requires that every method that queries the database was called; add new ones
// above.
func requireAllCalled(t *testing.T, called map[string]bool, rec *recorder) {
	t.Helper()
	kind := reflect.TypeFor[*Store]()
	for i := range kind.NumMethod() {
		name := kind.Method(i).Name
		if !slices.Contains([]string{"Close", "Migrate", "MigrationStatus", "Ping", "Pool"}, name) {
			require.True(t, called[name], "%s is not tried: is it by goods_id?", name)
			require.NotEmpty(t, rec.texts[name], name)
		}
	}
}

var (
	// tables are the places of a statement at which a table is named.
	tables = regexp.MustCompile("(?i)\\b(?:FROM|UPDATE|INTO|JOIN)\\s+`?[a-z_]+`?")
	// byGoods are those at which its rows are chosen by their goods.
	byGoods = regexp.MustCompile(
		"(?i)(?:`?[a-z_]+`?\\.)?`?goods_id`?\\s*(?:=\\s*(?:\\?|[a-z]\\.goods_id)|IN\\b)",
	)
	columns = regexp.MustCompile("(?i)^INSERT INTO `?[a-z_]+`? \\(([^)]*)\\)")
	// unsupported is what Vitess or TiDB refuse or do otherwise (docs/how-to/scale.md says where
	// that stands): statements that change the column which chooses the shard, or that swallow
	// errors, or can't be planned over shards.
	unsupported = regexp.MustCompile(
		"(?i)^REPLACE|INSERT IGNORE|SAVEPOINT|NATURAL JOIN|USING ?\\(|OVER ?\\(|SQL_CALC_FOUND_ROWS|LAST_INSERT_ID|SELECT \\*" +
			"|NOWAIT|SKIP LOCKED|LOCK IN SHARE|^(?:UPDATE|DELETE).* LIMIT|^UPDATE.* JOIN|(?:SET|UPDATE|,) ?`?(?:goods_id|actor_id)`? ?=",
	)
	control = regexp.MustCompile(`(?i)^(SET|START|BEGIN|COMMIT|ROLLBACK)\b`)
)

func requireSharded(t *testing.T, step, text string) {
	t.Helper()
	why, all := crossShardMethods()[step]
	key := strings.Contains(text, "idempotency_keys")
	switch {
	case control.MatchString(text):
	case all && !slices.Contains(keysOnly(), step), all && key:
		require.NotEmpty(t, why)
	case columns.MatchString(text):
		require.Contains(t, columns.FindStringSubmatch(text)[1], "goods_id", "%s: %s", step, text)
	default:
		require.NotEmpty(t, tables.FindAllString(text, -1), "%s: %s", step, text)
		require.GreaterOrEqual(t, len(byGoods.FindAllString(text, -1)),
			len(tables.FindAllString(text, -1)), "%s: %s", step, text)
	}
}

func TestStatements_MissingShardKeyIsDetected(t *testing.T) {
	for text, fine := range map[string]bool{
		"SELECT 1 FROM orders WHERE order_sn = ?":                                                                             false,
		"UPDATE `sales` SET `stock`=? WHERE `sales`.`goods_id` = ?":                                                           true,
		"DELETE FROM stock_moves WHERE id = ?":                                                                                false,
		"INSERT INTO `orders` (`goods_id`,`order_sn`) VALUES (?,?)":                                                           true,
		"INSERT INTO orders (order_sn) VALUES (?)":                                                                            false,
		"SELECT (SELECT COUNT(*) FROM orders WHERE goods_id = ?) + (SELECT COUNT(*) FROM stock_moves WHERE given_at IS NULL)": false,
	} {
		carries := columns.MatchString(text) &&
			strings.Contains(columns.FindStringSubmatch(text)[1], "goods_id") ||
			!columns.MatchString(text) &&
				len(byGoods.FindAllString(text, -1)) >= len(tables.FindAllString(text, -1))
		require.Equal(t, fine, carries, text)
	}
}

// callEveryMethod calls every method of a store and returns their names.
func callEveryMethod(t *testing.T, h fixture, rec *recorder) map[string]bool {
	t.Helper()
	ctx, called := t.Context(), map[string]bool{}
	now := func(method string) context.Context {
		rec.setStep(method)
		called[method] = true
		return ctx
	}
	sale := callSaleMethods(t, h, now)
	callOrderMethods(t, h, now, sale)
	callRepairMethods(t, h, now, sale)
	callListMethods(t, h, now, sale)
	return called
}

type recordMethod func(method string) context.Context

func callSaleMethods(t *testing.T, h fixture, now recordMethod) seckill.Sale {
	t.Helper()
	draft := seckill.NewSale{
		Title: "a kettle", Price: 1999, Stock: 100, PerBuyerLimit: 2, StartAt: today,
		EndAt: today.Add(time.Hour), Rate: seckill.DefaultRate(),
	}.Draft(1, today)
	key := salechange.IdempotencyKey{ActorID: 1, Key: "a key", Hash: "a hash"}
	must.Get(h.CreateSale(now("CreateSale"), draft, key))(t)
	_, _, err := h.Answered(now("Answered"), key, today)
	require.NoError(t, err)
	require.NoError(t, h.ForgetKeys(now("ForgetKeys"), today.Add(-time.Hour)))
	gone := draft
	gone.GoodsID++
	must.Get(h.CreateSale(now("CreateSale"), gone, salechange.IdempotencyKey{}))(t)
	require.NoError(t,
		h.DeleteDraft(now("DeleteDraft"), gone.GoodsID, salechange.IdempotencyKey{}, today))
	token := must.Get(h.NextRebuildToken(now("NextRebuildToken"), draft.GoodsID))(t)
	snap := must.Get(h.BeginEpoch(now("BeginEpoch"), draft.GoodsID, token, today))(t)
	must.Get(h.Change(now("Change"), draft.GoodsID, salechange.Change{StockDelta: 5},
		salechange.IdempotencyKey{}, today))(t)
	begun := must.Get(h.Change(now("Change"), draft.GoodsID, salechange.Change{StockDelta: -5},
		salechange.IdempotencyKey{}, today))(t)
	_, _, err = h.EndCut(now("EndCut"), *begun.Cut, order.MoveApplied, today)
	require.NoError(t, err)
	return snap.Sale
}

func callOrderMethods(t *testing.T, h fixture, now recordMethod, sale seckill.Sale) {
	t.Helper()
	goods := sale.GoodsID
	lines := h.lines(sale, 6)
	_, err := h.WriteBatch(now("WriteBatch"), batchOf(goods, lines...)) // optimistically
	require.NoError(t, err)
	_, err = h.WriteBatch(now("WriteBatch"),
		batchOf(goods, append(lines, h.line(sale, 1, 2))...)) // not all new; and one fails
	require.NoError(t, err)
	paid, cancelled, twice := lines[0].OrderSn, lines[1].OrderSn, payment.Payment{
		ID: "2", GoodsID: goods, OrderSn: lines[0].OrderSn, Amount: sale.Price,
	}
	must.Get(h.Order(now("Order"), goods, paid))(t)
	must.Get(h.Receive(now("Receive"),
		payment.Payment{ID: "1", GoodsID: goods, OrderSn: paid, Amount: sale.Price}, today))(t)
	must.Get(h.Receive(now("Receive"), twice, today))(t)
	due := must.Get(h.DueRefunds(now("DueRefunds"), today, 10))(t)
	mine, err := h.ClaimRefund(now("ClaimRefund"), due[0], today.Add(time.Hour))
	require.True(t, mine && err == nil, "%v", err)
	require.NoError(t, h.MarkRefunded(now("MarkRefunded"), twice, today))
	_, move, err := h.CancelOne(now("Cancel"), goods, cancelled, today)
	require.NoError(t, err)
	must.Get(h.MovesOfOrder(now("MovesOfOrder"), goods, cancelled))(t)
	require.NoError(t, h.MarkReleased(now("MarkReleased"), goods, []string{move.ID}, today))
	require.Len(t, must.Get(h.ExpireDue(now("ExpireDue"), goods, today.Add(time.Hour), 2))(t), 2)
}

func callRepairMethods(t *testing.T, h fixture, now recordMethod, sale seckill.Sale) {
	t.Helper()
	goods := sale.GoodsID
	dead := h.line(sale, 7, 1)
	out := must.Get(h.WriteFailed(now("WriteFailed"), goods, dead, sale.Epoch,
		order.FailedUnwritten, order.DeadLetter{ID: "a letter"}, today))(t)
	require.NoError(t, h.MarkReleased(now("MarkReleased"), goods, []string{out.Moves[0].ID}, today))
	must.Get(h.DeadLetter(now("DeadLetter"), "a letter"))(t)
	undo := must.Get(h.ScheduleRelease(now("ScheduleRelease"), goods, dead, today))(t)
	must.Get(h.RestoreOrder(now("RestoreOrder"), "a letter", undo, today, today.Add(time.Hour)))(t)
	require.NoError(
		t,
		h.AddDeadLetter(now("AddDeadLetter"),
			order.DeadLetter{ID: "another", GoodsID: goods, FirstSeenAt: today}),
	)
	require.NoError(t, h.RemoveDeadLetter(now("RemoveDeadLetter"), "another"))
	require.NoError(t,
		h.RecordBarrier(now("RecordBarrier"), goods, order.Barrier{Epoch: 1, Token: 1}, today))
	must.Get(h.BarrierReached(now("BarrierReached"), goods, 1, 1))(t)
	token := must.Get(h.NextRebuildToken(now("NextRebuildToken"), goods))(t)
	must.Get(h.BeginEpoch(now("BeginEpoch"), goods, token, today))(t)
	lost := h.line(sale, 8, 1)
	must.Get(h.WriteTombstone(now("WriteTombstone"), order.Order{
		OrderLine: lost, GoodsID: goods, Epoch: sale.Epoch, CreatedAt: today, ClosedAt: today,
	}))(t)
	late := batchOf(goods, lost)
	late.Epoch, late.Adopted = sale.Epoch+1, map[string]bool{lost.OrderSn: true}
	must.Get(h.WriteBatch(now("WriteBatch"), late))(t)
}

func callListMethods(t *testing.T, h fixture, now recordMethod, sale seckill.Sale) {
	t.Helper()
	goods := sale.GoodsID
	problems := map[string]error{}
	keep := func(method string, err error) { problems[method] = err }
	sns := []string{h.all(goods)[0].OrderSn}
	_, err := h.StatusOf(now("StatusOf"), goods, sns)
	keep("StatusOf", err)
	_, err = h.OrdersByNumber(now("OrdersByNumber"), goods, sns)
	keep("OrdersByNumber", err)
	_, err = h.OrdersOf(now("OrdersOf"), 1, "", 10)
	keep("OrdersOf", err)
	_, err = h.OrdersOfGoods(now("OrdersOfGoods"), goods, order.Created, sns[0], 10)
	keep("OrdersOfGoods", err)
	_, err = h.CountOrders(now("CountOrders"), goods)
	keep("CountOrders", err)
	_, err = h.AuditOf(now("AuditOf"), goods, "x", 10)
	keep("AuditOf", err)
	_, err = h.Sale(now("Sale"), goods)
	keep("Sale", err)
	_, err = h.Database(now("Database"), goods)
	keep("Database", err)
	_, err = h.CountUnreleased(now("CountUnreleased"), goods)
	keep("CountUnreleased", err)
	_, err = h.OldestUnreleasedMove(now("OldestUnreleasedMove"), goods)
	keep("OldestUnreleasedMove", err)
	_, err = h.SalesOf(now("SalesOf"), 1, 0, 10)
	keep("SalesOf", err)
	_, err = h.ExposedSales(now("ExposedSales"), 0, 10)
	keep("ExposedSales", err)
	_, err = h.LiveGoods(now("LiveGoods"), today)
	keep("LiveGoods", err)
	_, err = h.OverBefore(now("OverBefore"), today, 0, 10)
	keep("OverBefore", err)
	_, err = h.RetiredBetween(now("RetiredBetween"), today, today)
	keep("RetiredBetween", err)
	_, err = h.UnreleasedMoves(now("UnreleasedMoves"), today, 10)
	keep("UnreleasedMoves", err)
	_, err = h.OpenCuts(now("OpenCuts"), today, 10)
	keep("OpenCuts", err)
	_, err = h.DeadLetters(now("DeadLetters"), "", 10)
	keep("DeadLetters", err)
	_, err = h.CountDeadLetters(now("CountDeadLetters"))
	keep("CountDeadLetters", err)
	_, err = h.CloseSale(now("CloseSale"), goods, today)
	keep("CloseSale", err)
	_, err = h.Retire(now("Retire"), goods, sale.Epoch+1, today.Add(time.Hour), today)
	keep("Retire", err)
	for method, err := range problems {
		require.NoError(t, err, method)
	}
}
