package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"gorm.io/gorm"
)

// crossShardMethods are the calls that no single shard can answer. Each value describes how the
// call works on several shards (docs/how-to/scale.md, "MySQL"). No purchase makes any of these
// calls.
func crossShardMethods() map[string]string {
	const scan = "a scan of the background work, at most once a second: an index on each shard"
	const byKey = "the keys live on shards of their own (id); a change writes its entry of the audit " +
		"log on one shard more"
	const forget = "once a minute, on each shard"
	const hook = "webhooks live on shards of their own, by their ids, with their deliveries; a change " +
		"writes its entry of the audit log on one shard more"
	return map[string]string{
		"OrdersOf":         "a buyer's own list: an index on each shard, merged, or a lookup",
		"OrdersEndingWith": "a person's search: each shard's orders, merged",
		"AuditTrail":       "an actor's own list: each shard's whole log, merged; a sale's is on its shard",
		"SalesOf":          "a merchant's own list: an index on each shard, merged",
		"ExposedSales":     "the catalog: once a second for each node and page, merged",
		"LiveGoods":        scan,
		"LiveVersions":     scan,
		"OverBefore":       scan,
		"RetiredBetween":   scan,
		"UnreleasedAfter":  scan,
		"OpenCuts":         scan,
		"LateGoods":        scan,
		"CountLateOrders":  scan,
		"OpenOn":           scan,
		"Overdue":          "twice a second: an index range of each sale, on its shard",
		"DueRefunds":       scan,
		"DueCheckouts":     scan,
		"OpenRefunds":      "the operators' list: an index on each shard, merged",
		"OpenRefund":       "the lookup of a payment's number",
		"RetryRefund":      "an operator resolves one: the lookup of a payment's number",
		"SettleRefund":     "the same",
		"DeadLetters":      "the operators' list: by primary key on each shard, merged",
		"CountDeadLetters": scan,

		"CountStoppedRefunds": scan,
		"OldestRefund":        scan,
		"DeadLetter":          "an operator reads one: a lookup by id, or all shards",
		"RemoveDeadLetter":    "an operator resolves one: the same",
		"Answered":            "by the asker: the keys live on shards of their own (actor_id)",
		"Forget":              forget,
		"ForgetTombstones":    forget,
		"AddAPIKey":           byKey,
		"APIKeysByID":         byKey,
		"UseAPIKeys":          byKey,
		"RevokeAPIKey":        byKey,
		"APIKeys":             "a list for people: an index on each shard, merged",
		"CountAPIKeys":        "when a key is made: an index on each shard",
		"Events":              "a merchant's own list: an index on each shard, merged",
		"EventHead":           "one row on one shard",
		"CreateEndpoint":      hook, "FindEndpoint": hook, "ChangeEndpoint": hook,
		"DeleteEndpoint": hook, "Deliveries": hook, "RetryDelivery": hook,
		"ClaimEndpoint": hook, "LeasedEndpoint": hook, "PendingDelivery": hook,
		"SaveProgress": hook, "ReleaseEndpoint": hook,
		"EndpointsOf": "an owner's own list: an index on each shard, merged",
		"DueEndpoints": "a few times a second: an index on each shard, merged, the row of EventHead, " +
			"and the last events of each shard, merged",
		"CountDeadDeliveries": "every ten seconds: an index on each shard, added",
		"PlaceEvents":         "a few times a second: positions of events of all shards",
		"CreateSale":          "the key of the request lives by actor_id; all else by the goods",
		"Change":              "the same",
		"DeleteDraft":         "the same",
		"EndCut":              "the same",
	}
}

// keysOnly are those of crossShardMethods that may omit goods_id only in statements on the table of
// idempotency keys.
func keysOnly() []string { return []string{"CreateSale", "Change", "DeleteDraft", "EndCut"} }

// requireShardKeys requires that every method of the store was called and that each of its
// statements chooses its rows by goods_id. With shards by goods_id, each statement and each
// transaction then stays on one shard.
func (r *recorder) requireShardKeys(t *testing.T) {
	uncalled := []string{}
	for method := range reflect.TypeFor[*Store]().Methods() {
		if r.texts[method.Name] == nil {
			uncalled = append(uncalled, method.Name)
		}
	}
	require.Equal(t, []string{
		"Addr", "CheckReadiness", "CheckReplica", "Close", "Migrate", "MigrateWith",
		"Now", "Ping", "Pool", "ReplicaAddr",
	}, uncalled)
	for method, texts := range r.texts {
		_, all := crossShardMethods()[method]
		for text := range texts {
			require.NotRegexp(t, unsupported, text, method)
			key := strings.Contains(text, "idempotency_keys")
			if !all || !key && slices.Contains(keysOnly(), method) {
				require.True(t, hasShardKey(text), "%s: %s", method, text)
			}
		}
	}
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
)

// hasShardKey reports whether a statement chooses the rows of each of its tables by goods_id.
func hasShardKey(text string) bool {
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
		require.True(t, hasShardKey(text), text)
	}
	for _, text := range []string{
		"SELECT 1 FROM orders WHERE order_sn = ?",
		"DELETE FROM stock_moves WHERE id = ?",
		"INSERT INTO orders (order_sn) VALUES (?)",
		"SELECT (SELECT COUNT(*) FROM orders WHERE goods_id = ?)" +
			" + (SELECT COUNT(*) FROM stock_moves WHERE given_at IS NULL)",
	} {
		require.False(t, hasShardKey(text), text)
	}
}

// recorder records the statements of a store's exported methods.
type recorder struct {
	mu    sync.Mutex
	texts map[string]map[string]bool // by method
}

// record makes the store send its statements through the recorder.
func (r *recorder) record(s *Store) {
	pool := recordedPool{s.db.ConnPool, r}
	s.db.ConnPool, s.db.Statement.ConnPool = pool, pool
}

var storeMethod = regexp.MustCompile(`\(\*Store\)\.([A-Z]\w*)`)

// add records a statement under the method on the stack. It ignores statements of the tests.
func (r *recorder) add(text string) {
	callers, method := make([]uintptr, 100), ""
	frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers)])
	for frame, more := frames.Next(); more; frame, more = frames.Next() {
		if name := storeMethod.FindStringSubmatch(frame.Function); name != nil {
			method = name[1]
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if method != "" && r.texts[method] == nil {
		r.texts[method] = map[string]bool{}
	}
	if method != "" {
		r.texts[method][text] = true
	}
}

// recordedPool is a pool or a transaction whose statements are recorded.
type recordedPool struct {
	gorm.ConnPool
	in *recorder
}

func (p recordedPool) ExecContext(
	ctx context.Context, query string, args ...any,
) (sql.Result, error) {
	p.in.add(query)
	return p.ConnPool.ExecContext(ctx, query, args...)
}

func (p recordedPool) QueryContext(
	ctx context.Context, query string, args ...any,
) (*sql.Rows, error) {
	p.in.add(query)
	return p.ConnPool.QueryContext(ctx, query, args...)
}

func (p recordedPool) QueryRowContext(
	ctx context.Context, query string, args ...any,
) *sql.Row {
	p.in.add(query)
	return p.ConnPool.QueryRowContext(ctx, query, args...)
}

func (p recordedPool) BeginTx(ctx context.Context, opts *sql.TxOptions) (gorm.ConnPool, error) {
	tx, err := p.ConnPool.(*sql.DB).BeginTx(ctx, opts)
	return &recordedTx{recordedPool{tx, p.in}, tx}, err
}

type recordedTx struct {
	recordedPool
	driver.Tx
}
