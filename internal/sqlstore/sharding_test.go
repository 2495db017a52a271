package sqlstore

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/inventory"
	"flashsale.dev/seckill/internal/order/payment"
	"flashsale.dev/seckill/internal/order/rebuild"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/salechange"
)

// crossShardMethods are the calls that no single shard can answer. Each value describes how the
// call works on several shards (docs/how-to/scale.md, "MySQL"). No purchase makes any of these
// calls.
func crossShardMethods() map[string]string {
	const scan = "a scan of the background work, at most once a second: an index on each shard"
	return map[string]string{
		"OrdersOf":         "a buyer's own list: an index on each shard, merged, or a lookup",
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

// keysOnly are those of crossShardMethods that may omit goods_id only in statements on the table of
// idempotency keys.
func keysOnly() []string { return []string{"CreateSale", "Change", "DeleteDraft", "EndCut"} }

// TestStatements_CarryTheShardKey checks that every statement chooses its rows by goods_id. With
// shards by goods_id, each statement and each transaction then stays on one shard.
func TestStatements_CarryTheShardKey(t *testing.T) {
	onEach(t, sqlServers, func(t *testing.T, dsn string) {
		rec := &recorder{}
		h := openFixture(t, dsn, Options{wrap: rec.wrap})
		require.NoError(t, h.Migrate(t.Context()))
		c := caller{fixture: h, rec: rec, called: map[string]bool{}}
		c.callAll()
		c.requireAllCalled()
		for step, texts := range rec.texts {
			for _, text := range texts {
				requireSharded(t, step, text)
				require.NotRegexp(t, unsupported, text, step)
			}
		}
	})
}

var (
	// tables matches each place of a statement that names a table.
	tables = regexp.MustCompile("(?i)\\b(?:FROM|UPDATE|INTO|JOIN)\\s+`?[a-z_]+`?")
	// byGoods matches each place of a statement that chooses rows by goods_id.
	byGoods = regexp.MustCompile(
		"(?i)(?:`?[a-z_]+`?\\.)?`?goods_id`?\\s*(?:=\\s*(?:\\?|[a-z]\\.goods_id)|IN\\b)",
	)
	columns = regexp.MustCompile("(?i)^INSERT INTO `?[a-z_]+`? \\(([^)]*)\\)")
	// unsupported matches statements that Vitess or TiDB refuse or execute differently
	// (docs/how-to/scale.md). They change the column that chooses the shard, ignore errors, or
	// can't be planned over shards.
	unsupported = regexp.MustCompile(
		"(?i)^REPLACE|INSERT IGNORE|SAVEPOINT|NATURAL JOIN|USING ?\\(|OVER ?\\(" +
			"|SQL_CALC_FOUND_ROWS|LAST_INSERT_ID|SELECT \\*|NOWAIT|SKIP LOCKED|LOCK IN SHARE" +
			"|^(?:UPDATE|DELETE).* LIMIT|^UPDATE.* JOIN" +
			"|(?:SET|UPDATE|,) ?`?(?:goods_id|actor_id)`? ?=",
	)
	control = regexp.MustCompile(`(?i)^(SET|START|BEGIN|COMMIT|ROLLBACK)\b`)
)

func requireSharded(t *testing.T, step, text string) {
	t.Helper()
	_, all := crossShardMethods()[step]
	key := strings.Contains(text, "idempotency_keys")
	if control.MatchString(text) || all && (key || !slices.Contains(keysOnly(), step)) {
		return
	}
	require.True(t, carriesShardKey(text), "%s: %s", step, text)
}

// carriesShardKey reports whether a statement chooses the rows of each of its tables by goods_id.
func carriesShardKey(text string) bool {
	if insert := columns.FindStringSubmatch(text); insert != nil {
		return strings.Contains(insert[1], "goods_id")
	}
	named := len(tables.FindAllString(text, -1))
	return named > 0 && len(byGoods.FindAllString(text, -1)) >= named
}

func TestStatements_MissingShardKeyIsDetected(t *testing.T) {
	for _, text := range []string{
		"UPDATE `sales` SET `stock`=? WHERE `sales`.`goods_id` = ?",
		"INSERT INTO `orders` (`goods_id`,`order_sn`) VALUES (?,?)",
	} {
		require.True(t, carriesShardKey(text), text)
	}
	for _, text := range []string{
		"SELECT 1 FROM orders WHERE order_sn = ?",
		"DELETE FROM stock_moves WHERE id = ?",
		"INSERT INTO orders (order_sn) VALUES (?)",
		"SELECT (SELECT COUNT(*) FROM orders WHERE goods_id = ?)" +
			" + (SELECT COUNT(*) FROM stock_moves WHERE given_at IS NULL)",
	} {
		require.False(t, carriesShardKey(text), text)
	}
}

// caller calls a store's methods by name and records the statements of each.
type caller struct {
	fixture
	rec    *recorder
	called map[string]bool
}

// requireAllCalled requires that every method that queries the database was called.
func (c caller) requireAllCalled() {
	c.t.Helper()
	for method := range reflect.TypeFor[*Store]().Methods() {
		others := []string{"Close", "Migrate", "MigrationStatus", "Ping", "Pool"}
		if !slices.Contains(others, method.Name) {
			require.True(c.t, c.called[method.Name], "%s is not called: does it name goods_id?",
				method.Name)
			require.NotEmpty(c.t, c.rec.texts[method.Name], method.Name)
		}
	}
}

// call calls a method, requires success and returns the first result.
func (c caller) call(method string, args ...any) any {
	c.t.Helper()
	c.rec.setStep(method)
	c.called[method] = true
	f := reflect.ValueOf(c.Store).MethodByName(method)
	in := []reflect.Value{reflect.ValueOf(c.t.Context())}
	for i, arg := range args {
		in = append(in, reflect.ValueOf(arg).Convert(f.Type().In(i+1)))
	}
	out := f.Call(in)
	err, _ := out[len(out)-1].Interface().(error)
	require.NoError(c.t, err, method)
	return out[0].Interface()
}

func (c caller) callAll() {
	sale := c.callSaleMethods()
	c.callOrderMethods(sale)
	c.callRepairMethods(sale)
	c.callListMethods(sale)
}

func (c caller) callSaleMethods() seckill.Sale {
	draft := newSale(100, 2).Draft(1, today)
	goods := draft.GoodsID
	key := salechange.IdempotencyKey{ActorID: 1, Key: "a key", Hash: "a hash"}
	c.call("CreateSale", draft, key)
	c.call("Answered", key, today)
	c.call("ForgetKeys", today.Add(-time.Hour))
	gone := draft
	gone.GoodsID++
	c.call("CreateSale", gone, noKey)
	c.call("DeleteDraft", gone.GoodsID, noKey, today)
	token := c.call("NextRebuildToken", goods)
	snap := c.call("BeginEpoch", goods, token, today).(rebuild.Snapshot)
	c.call("Change", goods, salechange.Change{StockDelta: 5}, noKey, today)
	begun := c.call("Change", goods, salechange.Change{StockDelta: -5}, noKey, today)
	c.call("EndCut", *begun.(inventory.BegunChange).Cut, order.MoveApplied, today)
	return snap.Sale
}

func (c caller) callOrderMethods(sale seckill.Sale) {
	goods, lines := sale.GoodsID, c.lines(sale, 6)
	c.call("WriteBatch", batchOf(goods, lines...)) // the optimistic insert succeeds
	lines = append(lines, c.line(sale, 1, 2))
	c.call("WriteBatch", batchOf(goods, lines...)) // some orders exist, and one fails
	paid, cancelled := lines[0].OrderSn, lines[1].OrderSn
	second := c.payment(sale, "2", paid)
	c.call("Order", goods, paid)
	c.call("Receive", c.payment(sale, "1", paid), today)
	c.call("Receive", second, today)
	due := c.call("DueRefunds", today, 10).([]payment.Refund)
	require.Equal(c.t, true, c.call("ClaimRefund", due[0], today.Add(time.Hour)))
	c.call("MarkRefunded", second, today)
	ended := c.call("Cancel", goods, []string{cancelled}, today).([]payment.Cancellation)
	c.call("MovesOfOrder", goods, cancelled)
	c.call("MarkReleased", goods, []string{ended[0].Move.ID}, today)
	require.Len(c.t, c.call("ExpireDue", goods, today.Add(time.Hour), 2), 2)
}

func (c caller) callRepairMethods(sale seckill.Sale) {
	goods, dead := sale.GoodsID, c.line(sale, 7, 1)
	out := c.call("WriteFailed", goods, dead, order.FailedUnwritten,
		order.DeadLetter{ID: "a letter"}, today).(order.Outcome)
	c.call("MarkReleased", goods, []string{out.Moves[0].ID}, today)
	c.call("DeadLetter", "a letter")
	undo := c.call("ScheduleRelease", goods, dead, today)
	c.call("RestoreOrder", "a letter", undo, today, today.Add(time.Hour))
	c.call("AddDeadLetter", order.DeadLetter{ID: "another", GoodsID: goods, FirstSeenAt: today})
	c.call("RemoveDeadLetter", "another")
	c.call("RecordBarrier", goods, order.Barrier{Epoch: 1, Token: 1}, today)
	c.call("BarrierReached", goods, 1, 1)
	c.call("BeginEpoch", goods, c.call("NextRebuildToken", goods), today)
	late := c.line(sale, 8, 1)
	c.call("WriteTombstone", lost(sale, late))
	b := batchOf(goods, late)
	b.Epoch, b.Adopted = sale.Epoch+1, map[string]int64{late.OrderSn: 1}
	c.call("WriteBatch", b)
}

func (c caller) callListMethods(sale seckill.Sale) {
	goods := sale.GoodsID
	sns := []string{c.all(goods)[0].OrderSn}
	c.call("StatusOf", goods, sns)
	c.call("OrdersByNumber", goods, sns)
	c.call("OrdersOf", 1, "", 10)
	c.call("OrdersOfGoods", goods, order.Created, sns[0], 10)
	c.call("CountOrders", goods)
	c.call("AuditOf", goods, "x", 10)
	c.call("Sale", goods)
	c.call("Database", goods)
	c.call("CountUnreleased", goods)
	c.call("OldestUnreleasedMove", goods)
	c.call("SalesOf", 1, 0, 10)
	c.call("ExposedSales", 0, 10)
	c.call("LiveGoods", today)
	c.call("OverBefore", today, 0, 10)
	c.call("RetiredBetween", today, today)
	c.call("UnreleasedMoves", today, 10)
	c.call("OpenCuts", today, 10)
	c.call("DeadLetters", "", 10)
	c.call("CountDeadLetters")
	c.call("CloseSale", goods, today)
	c.call("Retire", goods, sale.Epoch+1, today.Add(time.Hour), today)
}
