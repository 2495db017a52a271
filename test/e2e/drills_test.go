package e2e

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/loadgen/apiclient"
	"flashsale.dev/seckill/internal/paymentprovider"
	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/must"
)

// drill injects the fault of alerts and returns the function that repairs it.
type drill struct {
	alerts []string
	fault  func(t *testing.T, r *installation.Installation, goods string) (repair func())
}

// drillsOf lists the alerts that have a drill.
func drillsOf() []string {
	var all []string
	for _, d := range drills() {
		all = append(all, d.alerts...)
	}
	return all
}

func drills() []drill {
	return []drill{
		{[]string{"SeckillOversold"}, lowerTotal},
		{[]string{"SeckillLedgerUnbalanced"}, raiseTotal},
		{[]string{"SeckillBacklogOld", "SeckillMySQLFails"}, lockGoodsRow},
		{[]string{"SeckillDeadLetters"}, publishUndecodable},
		{[]string{"SeckillWebhooksDead"}, storeDeadDelivery},
		{[]string{"SeckillPaymentsFail"}, payLockedOrders},
		{[]string{"SeckillPaymentRefused"}, reportUnknownPayment},
		{[]string{"SeckillRefundsFail"}, storeFailedRefund},
		{[]string{"SeckillRefundsStopped"}, storeStoppedRefund},
		{[]string{"SeckillRedisMemory"}, fillRedis},
		{[]string{"SeckillErrorRatio"}, killRedis},
		{[]string{"SeckillBrokerDown", "SeckillGateClosed"}, loseRedisWithoutRabbit},
		{[]string{"SeckillLineStalled"}, breakAdmitScript},
		{[]string{"SeckillBlind", "SeckillProgramDown"}, pauseConsumer},
		{[]string{"SeckillNoAPI"}, pauseAPI},
	}
}

// TestAlerts_FireInDrillAndClear injects the fault of each alert, and repairs it once the alert
// fires. The alert must then end.
func TestAlerts_FireInDrillAndClear(t *testing.T) {
	r := installation.Start(t, suite, installation.Options{
		OwnRabbit: true, Env: []string{"SECKILL_PAYMENT_SECRET=" + paymentSecret},
	})
	prometheus := r.Prometheus(t, impatientRules(t))
	for _, d := range drills() {
		t.Run(strings.Join(d.alerts, "+"), func(t *testing.T) {
			goods := r.PutUp(t, 100, 1)
			repair := d.fault(t, r, goods)
			untilAlerts(t, prometheus, d.alerts, true)
			repair()
			untilAlerts(t, prometheus, d.alerts, false)
			require.Eventually(t, func() bool {
				_, err := r.Merchant(t).Ledger(t.Context(), goods)
				return err == nil
			}, time.Minute, 100*time.Millisecond, "the sale has not recovered")
		})
	}
}

// untilAlerts waits until all of the alerts fire, or until none does.
func untilAlerts(t *testing.T, p *installation.Prometheus, alerts []string, fire bool) {
	require.Eventually(t, func() bool {
		firing, err := p.Firing(t.Context())
		return err == nil && !slices.ContainsFunc(alerts,
			func(a string) bool { return firing[a] != fire })
	}, 3*time.Minute, 200*time.Millisecond, "%v: firing should be %t", alerts, fire)
}

// lowerTotal lowers the sale's total in Redis below the units sold, as if the sale were oversold.
func lowerTotal(t *testing.T, r *installation.Installation, goods string) func() {
	buy(t, r, goods, 1)
	r.Drained(t, goods, time.Minute)
	return changeTotal(t, r, goods, -100)
}

// raiseTotal makes the sale's total in Redis one more than its units: the ledger lacks one.
func raiseTotal(t *testing.T, r *installation.Installation, goods string) func() {
	return changeTotal(t, r, goods, 1)
}

// changeTotal adds units to the sale's total in Redis. The repair takes them back.
func changeTotal(t *testing.T, r *installation.Installation, goods string, units int64) func() {
	c := r.RedisClient(t)
	add := func(n int64) {
		require.NoError(t, c.HIncrBy(t.Context(), installation.SaleKey(goods), "total", n).Err())
	}
	add(units)
	return func() { add(-units) }
}

// lockGoodsRow keeps the goods' row locked, so that the consumer can write no order.
func lockGoodsRow(t *testing.T, r *installation.Installation, goods string) func() {
	unlock := lock(t, r, "SELECT goods_id FROM sales WHERE goods_id = "+goods)
	buy(t, r, goods, 2)
	return unlock
}

// lock keeps the rows of a query locked until unlock is called.
func lock(t *testing.T, r *installation.Installation, query string) (unlock func()) {
	db := must.Get(sql.Open("mysql", r.DSN))(t)
	t.Cleanup(func() { _ = db.Close() })
	tx := must.Get(db.BeginTx(context.WithoutCancel(t.Context()), nil))(t)
	t.Cleanup(func() { _ = tx.Rollback() })
	_ = must.Get(tx.ExecContext(t.Context(), query+" FOR UPDATE"))(t)
	return func() { require.NoError(t, tx.Rollback()) }
}

func publishUndecodable(t *testing.T, r *installation.Installation, _ string) func() {
	conn := must.Get(amqp.Dial(r.AMQP))(t)
	defer conn.Close()
	ch := must.Get(conn.Channel())(t)
	require.NoError(t, ch.PublishWithContext(t.Context(), "seckill.orders", "0", true, false,
		amqp.Publishing{Body: []byte("no order")}))
	return func() {
		var dead struct{ Items []struct{ ID string } }
		call(t, r.Operator(t), http.MethodGet, "/admin/dead-letters", &dead)
		for _, deadLetter := range dead.Items {
			call(t, r.Operator(t), http.MethodDelete, "/admin/dead-letters/"+deadLetter.ID, nil)
		}
	}
}

// storeDeadDelivery stores a dead delivery, which takes a day otherwise.
func storeDeadDelivery(t *testing.T, r *installation.Installation, _ string) func() {
	r.ExecSQL(t, `INSERT INTO webhook_deliveries (endpoint_id, id, first_after, last_position,
		event_types, size, state, attempts, retried, http_status, problem, created_at)
		VALUES ('e', 'd', 0, 1, '[]', 1, 'dead', 30, 0, 500, 'STATUS', 0)`)
	return func() { r.ExecSQL(t, "DELETE FROM webhook_deliveries") }
}

// payLockedOrders has buyers pay again and again while no order can become paid.
func payLockedOrders(t *testing.T, r *installation.Installation, goods string) func() {
	sns := buy(t, r, goods, 8)
	r.Drained(t, goods, time.Minute)
	unlock := lock(t, r, "SELECT order_sn FROM orders WHERE goods_id = "+goods)
	var stops []func()
	for i, sn := range sns {
		stops = append(stops, askContinuously(t, r.Buyer(t, int64(i)+1), "/orders/"+sn+"/pay"))
	}
	return func() {
		unlock()
		for _, stop := range stops {
			stop()
		}
	}
}

// reportUnknownPayment reports a payment of an order that MySQL lacks, as after a restore.
func reportUnknownPayment(t *testing.T, r *installation.Installation, _ string) func() {
	signer := must.Get(paymentprovider.NewSigner([]byte(paymentSecret), time.Now))(t)
	body := []byte(`{"paymentId": "p-1", "orderSn": "no-such-order", "amount": 1}`)
	req := must.Get(http.NewRequestWithContext(t.Context(), http.MethodPost,
		r.Base(0)+"/payments/callback", bytes.NewReader(body)))(t)
	timestamp, signature := signer.Sign(body)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(paymentprovider.TimestampHeader, timestamp)
	req.Header.Set(paymentprovider.SignatureHeader, signature)
	answer := must.Get(http.DefaultClient.Do(req))(t)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusNotFound, answer.StatusCode)
	return func() {} // the alert ends with its window
}

// storeFailedRefund stores a refund whose first attempt was long ago. Its next one is in an hour.
func storeFailedRefund(t *testing.T, r *installation.Installation, goods string) func() {
	next := strconv.FormatInt(time.Now().Add(time.Hour).UnixMilli(), 10)
	r.ExecSQL(t, `INSERT INTO payments (payment_id, goods_id, order_sn, amount, state, reason, attempts,
		received_at, refund_since, refund_tried_at, refund_at, refund_problem)
		VALUES ('f', `+goods+`, 'o', 1, 'refunding', 'AMOUNT', 9, 0, 0, 0, `+next+`, 'x')`)
	return func() {
		require.NoError(t, r.Operator(t).Do(t.Context(), http.MethodPost, "/admin/refunds/f/retry",
			nil, nil))
	}
}

// storeStoppedRefund stores a refund that has failed for days. An operator settles it.
func storeStoppedRefund(t *testing.T, r *installation.Installation, goods string) func() {
	r.ExecSQL(t, `INSERT INTO payments (payment_id, goods_id, order_sn, amount, state, reason, attempts,
		received_at, refund_problem) VALUES ('p', `+goods+`, 'o', 1, 'refunding', 'AMOUNT', 80, 0, 'x')`)
	return func() {
		require.NoError(t, r.Operator(t).Do(t.Context(), http.MethodPost, "/admin/refunds/p/settle",
			nil, nil))
	}
}

func fillRedis(t *testing.T, r *installation.Installation, _ string) func() {
	c := r.RedisClient(t)
	info := must.Get(c.InfoMap(t.Context(), "memory").Result())(t)
	require.NoError(t, c.ConfigSet(t.Context(), "maxmemory", info["Memory"]["used_memory"]).Err())
	return func() { require.NoError(t, c.ConfigSet(t.Context(), "maxmemory", "0").Err()) }
}

func killRedis(t *testing.T, r *installation.Installation, goods string) func() {
	require.NoError(t, r.Redis.Kill())
	stop := askContinuously(t, r.Buyer(t, 99), "/randomPath?goodsId="+goods)
	return func() {
		require.NoError(t, r.Redis.Restart(t.Context()))
		stop()
	}
}

// askContinuously posts to a path again and again until stop is called.
func askContinuously(t *testing.T, buyer apiclient.Client, path string) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			// The answer does not matter: the requests only have to reach the API.
			_, _ = buyer.Call(ctx, http.MethodPost, path, nil)
		}
	}()
	return func() { cancel(); <-done }
}

// loseRedisWithoutRabbit empties Redis while the broker is down, so that no rebuild can drain the
// queue.
func loseRedisWithoutRabbit(t *testing.T, r *installation.Installation, _ string) func() {
	require.NoError(t, r.Rabbit.Kill())
	require.NoError(t, r.RedisClient(t).FlushAll(t.Context()).Err())
	return func() { require.NoError(t, r.Rabbit.Restart(t.Context())) }
}

// breakAdmitScript writes a key of a waiting room with a wrong type, so that the script that calls
// buyers fails.
func breakAdmitScript(t *testing.T, r *installation.Installation, _ string) func() {
	now := time.Now().UTC()
	goods := must.Get(r.Merchant(t).PutUp(t.Context(), apiclient.NewSale{
		Title: "a kettle", Price: 1999, Stock: 100, StartAt: now.Add(-time.Minute),
		EndAt: now.Add(time.Hour), Admission: "waitingRoom",
		Rate: &apiclient.Rate{PermitsPerSecond: 1, MaxBurstSeconds: 0},
	}))(t)
	room := "/sales/" + goods + "/waiting-room"
	require.Eventually(t, func() bool { // a consumer opens the room
		answer, err := r.Buyer(t, 1).Call(t.Context(), http.MethodPost, room, nil)
		return err == nil && answer.Status == http.StatusOK
	}, time.Minute, 50*time.Millisecond)
	for id := range int64(60) {
		call(t, r.Buyer(t, id+1), http.MethodPost, room, nil)
	}
	key := installation.SaleKey(goods) + ":late"
	require.NoError(t, r.RedisClient(t).Set(t.Context(), key, "no set", 0).Err())
	return func() {
		require.NoError(t, r.RedisClient(t).Del(t.Context(), key).Err())
	}
}

func pauseConsumer(t *testing.T, r *installation.Installation, _ string) func() {
	require.NoError(t, r.Consumers[0].Pause())
	return func() { require.NoError(t, r.Consumers[0].Resume()) }
}

func pauseAPI(t *testing.T, r *installation.Installation, _ string) func() {
	require.NoError(t, r.APIs[0].Pause())
	return func() { require.NoError(t, r.APIs[0].Resume()) }
}

// buy buys one unit for each of the given number of buyers, from 1 on. It returns the orders.
func buy(t *testing.T, r *installation.Installation, goods string, buyers int64) (sns []string) {
	for id := range buyers {
		buyer := r.Buyer(t, id+1)
		var path struct{ RandomPath string }
		call(t, buyer, http.MethodPost, "/randomPath?goodsId="+goods, &path)
		var bought struct{ OrderSn string }
		call(t, buyer, http.MethodPost, "/"+path.RandomPath+"/decrStock?goodsId="+goods, &bought)
		sns = append(sns, bought.OrderSn)
	}
	return sns
}

// call makes a call that must succeed, and decodes its data.
func call(t *testing.T, c apiclient.Client, method, path string, into any) {
	answer := must.Get(c.Call(t.Context(), method, path, nil))(t)
	require.Less(t, answer.Status, 300, "%s %s: %s %s", method, path, answer.Reason, answer.Message)
	if into != nil {
		require.NoError(t, json.Unmarshal(answer.Data, into))
	}
}
