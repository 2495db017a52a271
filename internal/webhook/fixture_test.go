package webhook_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"flashsale.dev/seckill/internal/auth"
	"flashsale.dev/seckill/internal/event"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/orderwriter"
	"flashsale.dev/seckill/internal/order/rebuild"
	"flashsale.dev/seckill/internal/ordersn"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/seckill/salechange"
	"flashsale.dev/seckill/internal/sqlstore"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
	"flashsale.dev/seckill/internal/webhook"
	"flashsale.dev/seckill/internal/workers"
)

var env = servers.NewSuite()

func TestMain(m *testing.M) { goleak.VerifyTestMain(env.Around(m)) }

// store is a database with a clock that tests set.
type store struct {
	*sqlstore.Store
	mu  sync.Mutex
	now time.Time // zero: the real time
}

// Now returns the test's time.
func (s *store) Now(context.Context) (time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now.IsZero() {
		return time.Now().UTC(), nil
	}
	return s.now, nil
}

func (s *store) pass(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(d)
}

// fixture is a service, a dispatcher and a database of their own.
type fixture struct {
	t       testing.TB
	store   *store
	service *webhook.Service
	keys    auth.WebhookSecrets
	allow   webhook.Allow
	due     chan struct{} // of all dispatchers
	log     bytes.Buffer  // the service's
}

func merchant() seckill.Actor { return seckill.Actor{ID: "70", Role: seckill.Merchant} }

func sqliteFile(t testing.TB) string {
	return "sqlite:" + filepath.Join(t.TempDir(), "seckill.db")
}

func newFixture(t testing.TB, dsn string) *fixture {
	t.Helper()
	db := must.Get(sqlstore.Open(t.Context(), dsn, ""))(t)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	require.NoError(t, db.Migrate(t.Context()))
	keys := auth.WebhookSecrets{
		Keys: must.Get(auth.NewPhones(auth.DerivedPhoneKey([]byte("a secret"))))(t),
	}
	f := &fixture{
		t: t, store: &store{Store: db}, keys: keys,
		allow: must.Get(webhook.ParseAllow([]string{"127.0.0.1"}))(t), due: make(chan struct{}, 1),
	}
	f.service = &webhook.Service{
		Store: f.store, Secrets: keys, Allow: f.allow,
		Log: slog.New(slog.NewTextHandler(&f.log, nil)),
	}
	return f
}

// newStoppedFixture returns a fixture on SQLite whose clock moves only by pass.
func newStoppedFixture(t testing.TB) *fixture {
	t.Helper()
	f := newFixture(t, sqliteFile(t))
	f.store.now = time.Now().UTC().Truncate(time.Millisecond)
	return f
}

// dispatcher returns a dispatcher that trusts the receivers' certificates.
func (f *fixture) dispatcher(trusted ...*receiver) *webhook.Dispatcher {
	roots := x509.NewCertPool()
	for _, r := range trusted {
		roots.AddCert(r.Certificate())
	}
	sender := webhook.NewSender(f.allow, roots)
	f.t.Cleanup(sender.Close)
	return &webhook.Dispatcher{
		Store: f.store, Feed: &event.Feed{Store: f.store, Currency: "CNY"}, Secrets: f.keys,
		Sender: sender, Due: f.due, Log: slog.New(slog.DiscardHandler),
	}
}

// round serves every endpoint that is due, and waits until all are served.
func (f *fixture) round(d *webhook.Dispatcher) { d.Round(f.t.Context()) }

// run runs dispatchers until the test has what it waits for.
func (f *fixture) run(until func() bool, dispatchers ...*webhook.Dispatcher) {
	f.t.Helper()
	ctx, cancel := context.WithCancel(f.t.Context())
	var g sync.WaitGroup
	for _, d := range dispatchers {
		g.Go(func() { _ = d.Run(ctx) })
	}
	defer g.Wait()
	defer cancel()
	require.Eventually(f.t, until, 3*time.Minute, 20*time.Millisecond)
}

// endpoint creates an endpoint of the merchant at a URL.
func (f *fixture) endpoint(url string, c webhook.Change) (webhook.Endpoint, string) {
	f.t.Helper()
	c.URL = &url
	e, secret, err := f.service.Create(f.t.Context(), merchant(), c)
	require.NoError(f.t, err)
	return e, secret
}

// deliveries lists the deliveries of an endpoint, oldest first.
func (f *fixture) deliveries(id string) []webhook.Delivery {
	f.t.Helper()
	list := must.Get(f.store.Deliveries(f.t.Context(), id, "", "", 5000))(f.t)
	slices.Reverse(list)
	return list
}

// sale creates and exposes a sale of the merchant. It writes no order.
func (f *fixture) sale() seckill.Sale {
	f.t.Helper()
	now := time.Now().UTC()
	sale := seckill.NewSale{
		Title: "A phone", Price: 100, Stock: 100_000, PerBuyerLimit: 1000, StartAt: now,
		EndAt: now.Add(time.Hour), Rate: seckill.DefaultRate(),
	}.Draft(merchant().ID, now)
	must.Get(f.store.CreateSale(f.t.Context(), sale, salechange.IdempotencyKey{}))(f.t)
	return must.Get(f.store.BeginEpoch(f.t.Context(), sale.GoodsID, rebuild.FirstToken,
		order.Times{Now: now, PayBy: now.Add(time.Hour)}))(f.t)
}

// orders writes orders in batches of 500, and places their events. It returns their numbers.
func (f *fixture) orders(sale seckill.Sale, n int) (sns []string) {
	f.t.Helper()
	now, keys := time.Now().UTC(), ordersn.NewKeys([]byte("a secret of the tests, 32 bytes."))
	for len(sns) < n {
		b := orderwriter.Batch{
			GoodsID: sale.GoodsID, Times: order.Times{Now: now, PayBy: now.Add(time.Hour)},
		}
		for range min(500, n-len(sns)) {
			buyer, at := strconv.Itoa(len(sns)+1), now.Add(-time.Duration(len(sns))*time.Millisecond)
			sn := keys.Issue(sale.GoodsID, buyer, at).String()
			sns = append(sns, sn)
			b.Lines = append(b.Lines, reservation.OrderLine{
				OrderSn: sn, BuyerID: buyer, Quantity: 1, Epoch: sale.Epoch,
			})
		}
		require.Len(f.t, must.Get(f.store.WriteBatch(f.t.Context(), b))(f.t).Created, len(b.Lines))
	}
	f.place()
	return sns
}

func (f *fixture) cancel(sale seckill.Sale, sns []string) {
	f.t.Helper()
	must.Get(f.store.Cancel(f.t.Context(), sale.GoodsID, sns, time.Now()))(f.t)
	f.place()
}

func (f *fixture) place() {
	f.t.Helper()
	for must.Get(f.store.PlaceEvents(f.t.Context(), 100))(f.t) == 100 {
	}
	workers.Signal(f.due)
}

// got is one request that a receiver has accepted or refused.
type got struct {
	header http.Header
	body   webhook.Body
	raw    []byte
	at     time.Time
}

// receiver is a merchant's program. It verifies each request with the library's own verifier.
type receiver struct {
	*httptest.Server
	t testing.TB
	// answer answers requests; nil: with 204.
	answer http.HandlerFunc

	mu     sync.Mutex
	secret string
	last   bool // the answer is that of the next request only
	all    []got
}

func newReceiver(t testing.TB, answer http.HandlerFunc) *receiver {
	t.Helper()
	r := &receiver{t: t, answer: answer}
	r.Server = httptest.NewTLSServer(http.HandlerFunc(r.serve))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) serve(w http.ResponseWriter, req *http.Request) {
	raw, err := io.ReadAll(req.Body)
	g := got{header: req.Header, raw: raw, at: time.Now()}
	if err != nil || json.Unmarshal(raw, &g.body) != nil {
		http.Error(w, "no body", http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	r.all = append(r.all, g)
	secret, answer := r.secret, r.answer
	if r.last {
		r.answer = nil
	}
	r.mu.Unlock()
	if secret != "" && !verifies(secret, g) {
		http.Error(w, "bad signature", http.StatusUnauthorized)
		return
	}
	if answer != nil {
		answer(w, req)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// verifies checks a signature. The time of a test's clock does not count.
func verifies(secret string, g got) bool {
	key, err := standardwebhooks.NewWebhook(secret)
	return err == nil && key.VerifyIgnoringTimestamp(g.raw, g.header) == nil
}

func (r *receiver) set(answer http.HandlerFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

// setOnce sets the answer of the next request; those after it get 204.
func (r *receiver) setOnce(answer http.HandlerFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer, r.last = answer, true
}

func (r *receiver) expect(secret string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.secret = secret
}

func (r *receiver) requests() []got {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all)
}

// items returns the items of all requests, without repetitions of a request.
func (r *receiver) items() (list []event.Item) {
	seen := map[string]bool{}
	for _, g := range r.requests() {
		id := g.header.Get("webhook-id")
		if !seen[id] {
			list = append(list, g.body.Data.Items...)
		}
		seen[id] = true
	}
	return list
}

func answerStatus(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
}
