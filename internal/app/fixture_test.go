package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/app"
	"flashsale.dev/seckill/internal/app/embedded"
	"flashsale.dev/seckill/internal/config"
	"flashsale.dev/seckill/internal/order/payment"
	"flashsale.dev/seckill/internal/ordersn"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/apicheck"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/webhook"
)

// fixture is the whole flash sale in this process on embedded servers: the router, the services and
// the workers.
type fixture struct {
	*embedded.Servers
	t        *testing.T
	api      *app.API
	settings app.Settings
	issues   int // order numbers made
	url      string
	server   *httptest.Server
	bank     *bank
	messages *os.File
	data     string
	log      *os.File
	client   *http.Client
}

// open starts a fixture and marks the test as parallel. Each fixture has its own servers, and most
// tests only wait for workers.
func open(t *testing.T) *fixture {
	t.Parallel()
	return openWith(t, 15*time.Minute)
}

// openWith starts a fixture with a payment period for unpaid orders.
func openWith(t *testing.T, paymentTimeout time.Duration) *fixture {
	h := openIdle(t, paymentTimeout)
	h.work()
	return h
}

var secret = []byte("a secret that only the tests know long enough")

// access returns the API's settings.
func access() app.APISettings {
	return app.APISettings{Config: config.Config{Auth: config.Auth{
		JWTSecret: config.Secret(secret), PaymentSecret: config.Secret(secret),
	}}}
}

// openIdle starts a fixture without workers.
func openIdle(t *testing.T, paymentTimeout time.Duration) *fixture {
	b := &bank{}
	h := openPaidBy(t, paymentTimeout, b)
	h.bank = b
	return h
}

// openPaidBy starts a fixture without workers, with a payment provider.
func openPaidBy(
	t *testing.T, paymentTimeout time.Duration, provider payment.Provider,
) *fixture {
	h := &fixture{t: t, data: t.TempDir()}
	files := t.TempDir()
	h.log = must.Get(os.Create(filepath.Join(files, "log")))(t)
	h.messages = must.Get(os.Create(filepath.Join(files, "messages")))(t)
	log := slog.New(slog.NewTextHandler(h.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	up := must.Get(embedded.Start(t.Context(), h.data, 0, log))(t)
	up.Provider, up.Queue = provider, &spiedOn{up.Queue, h.messages}
	h.Servers, h.settings = up, app.Settings{
		OrderSecrets: [][]byte{secret}, PublishTimeout: 2 * time.Second,
		PaymentTimeout: paymentTimeout, BatchSize: 500, Currency: "CNY",
		WebhookAllow: must.Get(webhook.ParseAllow([]string{"127.0.0.1"}))(t), // receivers of tests
	}
	h.api = must.Get(app.NewAPI(up.Parts, h.settings, access()))(t)
	h.server = httptest.NewUnstartedServer(h.api.Handler)
	h.server.Config = h.api.Server("", log)
	h.server.Start()
	h.url, h.client = h.server.URL, apicheck.Client(t, h.server.Client())
	t.Cleanup(func() {
		h.server.Close()
		require.NoError(t, errors.Join(up.Close(), h.log.Close(), h.messages.Close()))
	})
	return h
}

// work runs the workers until the test ends.
func (h *fixture) work() {
	ctx, cancel := context.WithCancel(context.WithoutCancel(h.t.Context()))
	ended := make(chan error, 1)
	go func() {
		ended <- app.Run(ctx, 10*time.Second, app.NewWorkers(h.Parts, h.settings), h.api.Workers())
	}()
	h.t.Cleanup(func() {
		cancel()
		require.NoError(h.t, <-ended)
	})
}

// spiedOn is a queue that stores the messages it receives in a file.
type spiedOn struct {
	app.Queue
	file *os.File
}

func (s *spiedOn) Publish(ctx context.Context, goodsID int64, body []byte) error {
	_, err := s.file.Write(body)
	return errors.Join(err, s.Queue.Publish(ctx, goodsID, body))
}

// textOf returns what a file has so far.
func (h *fixture) textOf(file *os.File) string {
	return string(must.Get(os.ReadFile(file.Name()))(h.t))
}

type reply = apicheck.Reply

// dataOf decodes a response's data.
func dataOf[T any](t *testing.T, r reply) (data T) {
	require.NoError(t, json.Unmarshal(r.Data, &data), r.Body)
	return data
}

func merchant() seckill.Actor { return seckill.Actor{ID: "70", Role: seckill.Merchant} }
func operator() seckill.Actor { return seckill.Actor{ID: "1", Role: seckill.Operator} }
func buyer(id int64) seckill.Actor {
	return seckill.Actor{
		ID: fmt.Sprint(id), Role: seckill.Buyer, Name: "Ann Lee", Phone: "+4479460123456",
		Email: "ann@example.org",
	}
}

// request sends a request as a user. Header fields come in pairs.
func (h *fixture) request(
	who seckill.Actor, method, target, body string, header ...string,
) *http.Request {
	req := must.Get(http.NewRequestWithContext(h.t.Context(), method, h.url+target,
		strings.NewReader(body)))(h.t)
	if who.ID != "" {
		token := must.Get(h.api.Tokens.Sign(who, time.Hour))(h.t)
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	return req
}

func (h *fixture) as(who seckill.Actor, method, target, body string, header ...string) reply {
	res := must.Get(h.client.Do(h.request(who, method, target, body, header...)))(h.t)
	return must.Get(apicheck.ReadReply(res))(h.t)
}

// does sends a request and requires a 200. A busy machine may miss a deadline, so does sends some
// requests up to ten times until the answer is no 503. They are a GET, one for a path, which
// changes nothing either, and one for a limiter, which sets the same again.
func (h *fixture) does(who seckill.Actor, method, target, body string, header ...string) reply {
	repeatable := method == "GET" || strings.HasPrefix(target, "/randomPath?") ||
		strings.HasPrefix(target, "/admin/limiters/")
	r := h.as(who, method, target, body, header...)
	for again := 1; again < 10 && repeatable &&
		r.Status == http.StatusServiceUnavailable; again++ {
		time.Sleep(time.Second)
		r = h.as(who, method, target, body, header...)
	}
	require.Equal(h.t, http.StatusOK, r.Status, "%s %s of %+v: %s", method, target, who, r.Body)
	return r
}

// refuses sends a request and requires a refusal with the reason.
func (h *fixture) refuses(
	reason string, who seckill.Actor, method, target, body string, header ...string,
) reply {
	r := h.as(who, method, target, body, header...)
	require.Equal(h.t, reason, r.Reason, "%s %s of %+v: %s", method, target, who, r.Body)
	return r
}

// id converts a goods id to a number.
func (h *fixture) id(goods string) int64 {
	return must.Get(strconv.ParseInt(goods, 10, 64))(h.t)
}

// draft creates a draft that is ongoing as soon as it is exposed.
func (h *fixture) draft(units, limit string) string {
	now := time.Now().UTC()
	r := h.as(merchant(), "POST", "/admin/sales", fmt.Sprintf(
		`{"title":"a kettle","price":1999,"stock":%s,"perBuyerLimit":%s,"startAt":%q,"endAt":%q}`,
		units, limit,
		now.Add(-time.Minute).Format(time.RFC3339), now.Add(time.Hour).Format(time.RFC3339)))
	require.Equal(h.t, http.StatusCreated, r.Status, r.Body)
	return dataOf[struct{ GoodsID string }](h.t, r).GoodsID
}

// exposed creates and exposes a sale.
func (h *fixture) exposed(units, limit string) string {
	goods := h.draft(units, limit)
	h.does(merchant(), "POST", "/admin/sales/"+goods+"/expose", "")
	return goods
}

// tries requests a random path and then purchases. It returns the last response.
func (h *fixture) tries(who seckill.Actor, goods, quantity string) reply {
	r := h.as(who, "POST", "/randomPath?goodsId="+goods, "")
	if r.Status != http.StatusOK {
		return r
	}
	return h.takes(who, goods, quantity, dataOf[struct{ RandomPath string }](h.t, r).RandomPath)
}

// takes purchases with a random path.
func (h *fixture) takes(who seckill.Actor, goods, quantity, path string) reply {
	return h.as(who, "POST", "/"+path+"/decrStock",
		`{"goodsId":"`+goods+`","decrStock":`+quantity+`}`)
}

// buys purchases and waits until the order is written. It returns the order number.
func (h *fixture) buys(who seckill.Actor, goods, quantity string) string {
	path := dataOf[struct{ RandomPath string }](h.t,
		h.does(who, "POST", "/randomPath?goodsId="+goods, "")).RandomPath
	var r reply
	h.eventually(func() bool { // a busy machine may need more than one deadline
		r = h.takes(who, goods, quantity, path)
		return r.Status == http.StatusAccepted
	}, "the purchase was never confirmed")
	sn := dataOf[struct{ OrderSn string }](h.t, r).OrderSn
	h.becomes(who, sn, "created")
	return sn
}

// becomes waits until an order has the status.
func (h *fixture) becomes(who seckill.Actor, sn, status string) {
	h.eventually(func() bool {
		return strings.Contains(h.as(who, "GET", "/orders/"+sn, "").Body, `"status":"`+status+`"`)
	}, sn+" never became "+status)
}

// eventually polls in the test's goroutine, where a request that fails may end the test.
func (h *fixture) eventually(is func() bool, what string) {
	for until := time.Now().Add(time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
		require.True(h.t, time.Now().Before(until), what)
	}
}

// ledger returns the ledger that the API reports.
func (h *fixture) ledger(goods string) seckill.Ledger {
	return dataOf[seckill.Ledger](h.t,
		h.does(merchant(), "GET", "/admin/sales/"+goods+"/ledger", ""))
}

// exact waits until the sale's ledger has the given values in Redis and MySQL.
func (h *fixture) exact(goods string, total, available, sold int64) {
	want := seckill.Ledger{
		Total: total, Available: available, Sold: sold, Balanced: true, Epoch: 1,
		Database: seckill.Database{Stock: available, Active: sold},
	}
	for until := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		got := h.ledger(goods)
		if got == want {
			return
		}
		require.True(h.t, time.Now().Before(until), "the ledger is %+v, not %+v", got, want)
	}
}

// issued is a new order number of a buyer; numbers sort in the order of the calls.
func (h *fixture) issued(goodsID, buyerID int64) string {
	h.issues++
	at := time.Now().Add(time.Duration(h.issues) * time.Millisecond)
	return ordersn.NewKeys(h.settings.OrderSecrets...).Issue(goodsID,
		fmt.Sprint(buyerID), at).String()
}
