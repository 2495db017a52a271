package webhook_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/auth"
	"flashsale.dev/seckill/internal/event"
	"flashsale.dev/seckill/internal/order/retention"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/webhook"
)

// TestDispatcher_SendsSignedBatchesInOrder checks the request: method, headers, signature by the
// library's own verifier at the real time, and the events of the endpoint's types in order.
func TestDispatcher_SendsSignedBatchesInOrder(t *testing.T) {
	f := newFixture(t, sqliteFile(t))
	before := f.sale()
	f.orders(before, 1)
	r := newReceiver(t, nil)
	e, secret := f.endpoint(r.URL+"/hook?x=1", webhook.Change{
		Types: &[]event.Type{event.OrderCreated, event.OrderCancelled}, MaxBatch: new(int64(4)),
	})
	sale := f.sale()
	sns := f.orders(sale, 6)
	f.cancel(sale, sns[:3])
	f.run(func() bool { return len(r.items()) == 9 }, f.dispatcher(r))
	for i, item := range r.items() {
		if i < len(sns) {
			require.Equal(t, sns[i], item.OrderSn)
			require.Equal(t, event.OrderCreated, item.Type)
		} else {
			require.Contains(t, sns[:3], item.OrderSn)
			require.Equal(t, event.OrderCancelled, item.Type)
		}
		require.Equal(t, strconv.FormatInt(sale.GoodsID, 10), item.GoodsID)
	}
	key := must.Get(standardwebhooks.NewWebhook(secret))(t)
	ids := map[string]bool{}
	for i, g := range r.requests() {
		require.NoError(t, key.Verify(g.raw, g.header))
		require.Equal(t, "application/json", g.header.Get("Content-Type"))
		require.Equal(t, "events", g.body.Type)
		require.Len(t, g.body.Data.Items, []int{4, 4, 1}[i])
		ids[g.header.Get("webhook-id")] = true
		require.NotContains(t, fmt.Sprint(g.header)+string(g.raw), secret)
	}
	require.Len(t, ids, 3)
	for _, d := range f.deliveries(e.ID) {
		require.True(t, ids[d.ID])
		require.Equal(t, []any{webhook.Delivered, int64(1), 204, webhook.NoProblem},
			[]any{d.State, d.Attempts, d.Status, d.Problem})
	}
	kept := must.Get(f.store.FindEndpoint(t.Context(), e.ID))(t)
	require.NotContains(t, kept.Secret, secret[len("whsec_"):])
}

// TestDispatcher_RepeatsTheRequestUntilTheReceiverIsBack checks that nothing is lost: the same
// request is repeated with growing pauses, and the rest follows in order once the receiver is back.
func TestDispatcher_RepeatsTheRequestUntilTheReceiverIsBack(t *testing.T) {
	f := newStoppedFixture(t)
	began := f.store.now
	r := newReceiver(t, answerStatus(http.StatusInternalServerError))
	e, secret := f.endpoint(r.URL, webhook.Change{MaxBatch: new(int64(3))})
	r.expect(secret)
	sns := f.orders(f.sale(), 7)
	d := f.dispatcher(r)
	for f.store.now.Sub(began) < time.Hour {
		f.round(d)
		f.store.pass(time.Second)
	}
	down := r.requests()
	require.InDelta(t, 9, len(down), 4, "5 s, 10 s, 20 s, …, with jitter")
	for _, g := range down {
		require.Equal(t, down[0].raw, g.raw, "every attempt has the same body")
		require.Equal(t, down[0].header.Get("webhook-id"), g.header.Get("webhook-id"))
	}
	failing := f.deliveries(e.ID)
	require.Len(t, failing, 1)
	require.Equal(t, []any{webhook.Pending, int64(len(down)), 500, webhook.BadStatus},
		[]any{failing[0].State, failing[0].Attempts, failing[0].Status, failing[0].Problem})
	require.True(t, failing[0].NextAt.After(f.store.now.Add(-time.Second)))
	r.set(nil)
	for range 90 {
		f.store.pass(time.Minute)
		f.round(d)
	}
	var orders []string
	for _, item := range r.items() {
		if item.Type == event.OrderCreated {
			orders = append(orders, item.OrderSn)
		}
	}
	require.Equal(t, sns, orders)
	after := must.Get(f.store.FindEndpoint(t.Context(), e.ID))(t)
	require.True(t, after.FailingSince.IsZero())
	require.Equal(t, must.Get(f.store.EventHead(t.Context()))(t), after.Position)
}

// TestDispatcher_SendsAtOnceToAURLChangedDuringAnAttempt has an owner set a new URL while an
// attempt at the old one is in progress. The delivery is sent to the new one at once.
func TestDispatcher_SendsAtOnceToAURLChangedDuringAnAttempt(t *testing.T) {
	f := newStoppedFixture(t)
	repaired := newReceiver(t, nil)
	var id string
	broken := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
		f.store.pass(time.Second)
		_, _, err := f.service.Change(t.Context(), merchant(), id,
			webhook.Change{URL: &repaired.URL})
		assert.NoError(t, err)
		w.WriteHeader(http.StatusInternalServerError)
	})
	e, _ := f.endpoint(broken.URL, webhook.Change{})
	id = e.ID
	f.orders(f.sale(), 1)
	d := f.dispatcher(broken, repaired)
	f.round(d)
	require.Len(t, broken.requests(), 1)
	require.Equal(t, webhook.BadStatus, f.deliveries(id)[0].Problem)
	f.round(d)
	require.Len(t, repaired.items(), 2)
	require.Equal(t, webhook.Delivered, f.deliveries(id)[0].State)
}

// TestDispatcher_RetriesAPendingDeliveryAtOnceInItsPlace has an owner ask for a delivery that waits
// for its next attempt. It is sent at once, also during an attempt that fails. It keeps its place.
func TestDispatcher_RetriesAPendingDeliveryAtOnceInItsPlace(t *testing.T) {
	f := newStoppedFixture(t)
	var id string
	retry := func() {
		f.store.pass(time.Second)
		d, err := f.service.Retry(t.Context(), merchant(), id, f.deliveries(id)[0].ID)
		assert.NoError(t, err)
		assert.Equal(t, []any{webhook.Pending, false}, []any{d.State, d.Retried})
	}
	r := newReceiver(t, answerStatus(http.StatusInternalServerError))
	e, _ := f.endpoint(r.URL, webhook.Change{MaxBatch: new(int64(1))})
	id = e.ID
	f.orders(f.sale(), 1)
	d := f.dispatcher(r)
	f.round(d)
	f.round(d)
	require.Len(t, r.requests(), 1, "it waits")
	r.set(func(w http.ResponseWriter, _ *http.Request) {
		retry()
		w.WriteHeader(http.StatusInternalServerError)
	})
	retry()
	f.round(d)
	r.set(nil)
	f.round(d)
	var ids []string
	for _, g := range r.requests() {
		ids = append(ids, g.header.Get("webhook-id"))
	}
	require.Len(t, ids, 4, "two that failed, this one and the next")
	require.Equal(t, []string{ids[0], ids[0], ids[0]}, ids[:3])
	_, err := f.service.Retry(t.Context(), merchant(), id, ids[0])
	require.Equal(t, apierror.Conflict, apierror.ReasonOf(err), "it was delivered")
}

// headHook is a store that calls a function before it reads the head of the events.
type headHook struct {
	*store
	before func()
}

// EventHead calls the function.
func (s headHook) EventHead(ctx context.Context) (int64, error) {
	s.before()
	return s.store.EventHead(ctx)
}

// TestDispatcher_SendsTypesAddedWhileItSleeps checks that an endpoint gets what happens after its
// owner has asked for it. A dispatcher may have read the endpoint before, and not yet the events.
// In one case the dispatcher has a delivery of the former types to make.
func TestDispatcher_SendsTypesAddedWhileItSleeps(t *testing.T) {
	for _, former := range []event.Type{event.OrderPaid, event.OrderCreated} {
		t.Run(string(former), func(t *testing.T) {
			f := newStoppedFixture(t)
			r := newReceiver(t, nil)
			e, _ := f.endpoint(r.URL, webhook.Change{Types: &[]event.Type{former}})
			sale := f.sale()
			sns := f.orders(sale, 1)
			var once sync.Once
			d := f.dispatcher(r)
			d.Store = headHook{f.store, func() {
				once.Do(func() {
					f.store.pass(time.Minute)
					_, _, err := f.service.Change(t.Context(), merchant(), e.ID,
						webhook.Change{Types: &[]event.Type{former, event.OrderCancelled}})
					assert.NoError(t, err)
					f.cancel(sale, sns)
					f.orders(sale, 1)
				})
			}}
			f.round(d)
			f.round(d)
			var got []event.Type
			for _, item := range r.items() {
				got = append(got, item.Type)
			}
			require.Contains(t, got, event.OrderCancelled)
		})
	}
}

// killed is a store whose dispatcher ends before the first attempt of a delivery.
type killed struct{ *store }

// SaveProgress stores the delivery.
func (s killed) SaveProgress(ctx context.Context, e webhook.Endpoint, d *webhook.Delivery) error {
	return errors.Join(s.store.SaveProgress(ctx, e, d), context.Canceled)
}

// TestDispatcher_SendsAtOnceAfterTheClockIsSetBack sets the database's clock back by an hour. A
// delivery that waits for its next attempt, or was made and not attempted, is then sent at once.
// After that it waits as ever.
func TestDispatcher_SendsAtOnceAfterTheClockIsSetBack(t *testing.T) {
	f := newStoppedFixture(t)
	r := newReceiver(t, answerStatus(http.StatusInternalServerError))
	f.endpoint(r.URL, webhook.Change{})
	f.orders(f.sale(), 1)
	d := f.dispatcher(r)
	attemptsAfter := func(passed time.Duration) int {
		f.store.pass(passed)
		f.round(d)
		return len(r.requests())
	}
	d.Store = killed{f.store}
	require.Zero(t, attemptsAfter(0))
	d.Store = f.store
	require.Equal(t, 1, attemptsAfter(-time.Hour))
	require.Equal(t, 1, attemptsAfter(time.Second))
	require.Equal(t, 2, attemptsAfter(-time.Hour))
	require.Equal(t, 2, attemptsAfter(time.Second))
	require.Equal(t, 3, attemptsAfter(time.Minute))
}

// TestDispatcher_ServesAChangeAfterTheClockIsSetBack checks that what an owner has made due is sent
// at once if the database's clock was set back since: the events of a new endpoint, a delivery that
// waits for its next attempt, and a dead one on demand.
func TestDispatcher_ServesAChangeAfterTheClockIsSetBack(t *testing.T) {
	const step, day = 10 * time.Minute, 24 * time.Hour
	for name, c := range map[string]struct {
		failing time.Duration // before the change
		pause   time.Duration // then, until the change
		change  func(f *fixture, id string)
	}{
		"new": {change: func(f *fixture, _ string) { f.orders(f.sale(), 1) }},
		"waits": {failing: day / 4, pause: 2 * step, change: func(f *fixture, id string) {
			_, _, err := f.service.Change(f.t.Context(), merchant(), id,
				webhook.Change{MaxBatch: new(int64(1))})
			require.NoError(f.t, err)
		}},
		"on demand": {failing: day + day/8, pause: day, change: func(f *fixture, id string) {
			d := f.deliveries(id)[0]
			require.Equal(f.t, webhook.Dead, d.State)
			must.Get(f.service.Retry(f.t.Context(), merchant(), id, d.ID))(f.t)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newStoppedFixture(t)
			r := newReceiver(t, answerStatus(http.StatusInternalServerError))
			e, _ := f.endpoint(r.URL, webhook.Change{})
			d := f.dispatcher(r)
			if c.failing > 0 {
				f.orders(f.sale(), 1)
			}
			for passed := time.Duration(0); passed < c.failing; passed += step / 2 {
				f.store.pass(step / 2)
				f.round(d)
			}
			attempts := len(r.requests())
			for c.failing > 0 && c.failing < day && len(r.requests()) == attempts {
				f.store.pass(step / 2) // until the next attempt, which begins a pause of an hour
				f.round(d)
			}
			attempts = len(r.requests())
			f.store.pass(c.pause)
			c.change(f, e.ID)
			f.store.pass(-step)
			f.round(d)
			require.Equal(t, attempts+1, len(r.requests()))
		})
	}
}

// TestDispatcher_EndsEachDeliveryAsDeadAfterADay checks that each delivery is dead after a day of
// its own. Dead ones are sent again on demand with one attempt, and the endpoint is disabled after
// five days.
func TestDispatcher_EndsEachDeliveryAsDeadAfterADay(t *testing.T) {
	ctx, f := t.Context(), newStoppedFixture(t)
	r := newReceiver(t, answerStatus(http.StatusServiceUnavailable))
	e, secret := f.endpoint(r.URL, webhook.Change{MaxBatch: new(int64(1))})
	sns := f.orders(f.sale(), 2)
	d := f.dispatcher(r)
	pass := func(days float64) {
		for range int(days * 24 * 12) {
			f.store.pass(5 * time.Minute)
			f.round(d)
		}
	}
	pass(0.95)
	require.Equal(t, webhook.Pending, f.deliveries(e.ID)[0].State)
	require.Zero(t, must.Get(f.store.CountDeadDeliveries(ctx))(t))
	for n := range 3 { // the exposure, and the orders behind it
		pass(0.15)
		require.EqualValues(t, n+1, must.Get(f.store.CountDeadDeliveries(ctx))(t))
		pass(0.95)
	}
	dead := must.Get(f.service.Deliveries(ctx, merchant(), e.ID, webhook.Dead, "", 10))(t)
	require.Len(t, dead, 3)
	id := dead[1].ID
	require.Equal(t, webhook.Pending, must.Get(f.service.Retry(ctx, merchant(), e.ID, id))(t).State)
	require.Equal(t, webhook.Pending, must.Get(f.service.Retry(ctx, merchant(), e.ID, id))(t).State)
	attempts := len(r.requests())
	f.round(d)
	require.Len(t, r.requests(), attempts+1, "one attempt")
	require.EqualValues(t, 3, must.Get(f.store.CountDeadDeliveries(ctx))(t))
	r.set(nil)
	r.expect(secret)
	must.Get(f.service.Retry(ctx, merchant(), e.ID, id))(t)
	f.round(d)
	require.EqualValues(t, 2, must.Get(f.store.CountDeadDeliveries(ctx))(t))
	sent := r.requests()
	require.Equal(t, sns[0], sent[len(sent)-1].body.Data.Items[0].OrderSn)
	require.True(t, must.Get(f.store.FindEndpoint(ctx, e.ID))(t).FailingSince.IsZero())
	r.set(answerStatus(http.StatusServiceUnavailable))
	f.orders(f.sale(), 1)
	pass(1.1)
	f.orders(f.sale(), 3)
	enable := func() webhook.Endpoint {
		e, _, err := f.service.Change(ctx, merchant(), e.ID, webhook.Change{Enabled: new(true)})
		require.NoError(t, err)
		return e
	}
	require.True(t, must.Get(f.store.FindEndpoint(ctx, e.ID))(t).Enabled)
	require.False(t, enable().FailingSince.IsZero(), "it was enabled, and fails")
	pass(5)
	require.False(t, must.Get(f.store.FindEndpoint(ctx, e.ID))(t).Enabled)
	r.set(nil)
	require.True(t, enable().FailingSince.IsZero())
	before := len(r.items())
	f.round(d)
	require.Greater(t, len(r.items()), before, "what followed the dead delivery is sent")
}

// TestDispatcher_SlowReceiverDelaysNoOther checks that endpoints whose receivers do not answer hold
// up none that do.
func TestDispatcher_SlowReceiverDelaysNoOther(t *testing.T) {
	f := newFixture(t, sqliteFile(t))
	release := make(chan bool)
	slow := newReceiver(t, func(http.ResponseWriter, *http.Request) { <-release })
	quick := newReceiver(t, nil)
	var waiting []webhook.Endpoint
	for range 5 {
		e, _ := f.endpoint(slow.URL, webhook.Change{})
		waiting = append(waiting, e)
	}
	f.endpoint(quick.URL, webhook.Change{})
	sale := f.sale()
	d := f.dispatcher(slow, quick)
	f.run(func() bool {
		if n := len(quick.items()); n < 50 {
			f.orders(sale, 10)
			return false
		}
		return len(slow.requests()) >= len(waiting)
	}, d)
	close(release)
	for _, e := range waiting {
		sent := f.deliveries(e.ID)
		require.Len(t, sent, 1)
		require.Equal(t, webhook.Pending, sent[0].State)
	}
}

// TestDispatcher_EndsAnAttemptThatGetsNoAnswer checks that an attempt ends while the receiver does
// not answer.
func TestDispatcher_EndsAnAttemptThatGetsNoAnswer(t *testing.T) {
	f := newFixture(t, sqliteFile(t))
	release := make(chan bool)
	defer close(release)
	slow := newReceiver(t, func(http.ResponseWriter, *http.Request) { <-release })
	e, _ := f.endpoint(slow.URL, webhook.Change{})
	f.orders(f.sale(), 1)
	f.round(f.dispatcher(slow))
	require.Equal(t, webhook.TimedOut, f.deliveries(e.ID)[0].Problem)
	require.Zero(t, f.deliveries(e.ID)[0].Status)
}

// TestDispatcher_ContactsNoAddressThatIsNotAllowed checks that no connection is made to a private
// address, nor without TLS to a host that is named no longer. A redirect is not followed, not even
// to an address that is allowed.
func TestDispatcher_ContactsNoAddressThatIsNotAllowed(t *testing.T) {
	ctx, f := t.Context(), newFixture(t, sqliteFile(t))
	var connections atomic.Int64
	inner := httptest.NewUnstartedServer(http.NotFoundHandler())
	inner.Config.ConnState = func(net.Conn, http.ConnState) { connections.Add(1) }
	inner.StartTLS()
	t.Cleanup(inner.Close)
	private, _ := f.endpoint(inner.URL, webhook.Change{})
	f.allow = webhook.Allow{} // as after a restart with other settings
	f.orders(f.sale(), 1)
	f.round(f.dispatcher())
	require.Equal(t, webhook.PrivateAddress, f.deliveries(private.ID)[0].Problem)
	require.NoError(t, f.service.Delete(ctx, merchant(), private.ID))
	f.allow = f.service.Allow
	redirects := newReceiver(t, func(w http.ResponseWriter, req *http.Request) {
		http.Redirect(w, req, inner.URL, http.StatusTemporaryRedirect)
	})
	e, _ := f.endpoint(redirects.URL, webhook.Change{})
	f.service.Allow = must.Get(webhook.ParseAllow([]string{"localhost"}))(t)
	plain, _ := f.endpoint(strings.Replace(inner.URL, "https://127.0.0.1", "http://localhost", 1),
		webhook.Change{})
	f.orders(f.sale(), 1)
	f.round(f.dispatcher(redirects))
	require.Equal(t, webhook.PrivateAddress, f.deliveries(plain.ID)[0].Problem)
	d := f.deliveries(e.ID)[0]
	require.Equal(t, []any{webhook.Redirected, 307, webhook.Pending},
		[]any{d.Problem, d.Status, d.State})
	require.Zero(t, connections.Load())
}

// TestDispatcher_StopsAfterTheAttempt stops a dispatcher during a request. The dispatcher finishes
// it and stores its outcome, and the next dispatcher goes on behind it at once.
func TestDispatcher_StopsAfterTheAttempt(t *testing.T) {
	f := newFixture(t, sqliteFile(t))
	entered, release := make(chan bool, 10), make(chan bool)
	r := newReceiver(t, func(http.ResponseWriter, *http.Request) {
		entered <- true
		<-release
	})
	e, secret := f.endpoint(r.URL, webhook.Change{MaxBatch: new(int64(2))})
	r.expect(secret)
	sns := f.orders(f.sale(), 5) // with the exposure 6 events, 3 requests
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	first, second := f.dispatcher(r), f.dispatcher(r)
	go func() { ended <- first.Run(ctx) }()
	<-entered
	stop()
	close(release)
	require.NoError(t, <-ended)
	sent := f.deliveries(e.ID)
	require.Len(t, sent, 1)
	require.Equal(t, webhook.Delivered, sent[0].State)
	f.round(second)
	require.Len(t, r.requests(), 3, "none twice")
	var got []string
	for _, item := range r.items()[1:] {
		got = append(got, item.OrderSn)
	}
	require.Equal(t, sns, got)
}

// TestDispatcher_RepeatsADeliveryWhoseOutcomeIsNotStored checks that a delivery whose outcome was
// not stored is sent again with the same id and body when the lease has ended. A dispatcher whose
// lease is lost stores nothing.
func TestDispatcher_RepeatsADeliveryWhoseOutcomeIsNotStored(t *testing.T) {
	ctx, f := t.Context(), newStoppedFixture(t)
	r := newReceiver(t, nil)
	e, _ := f.endpoint(r.URL, webhook.Change{})
	f.orders(f.sale(), 3)
	d := f.dispatcher(r)
	r.setOnce(func(http.ResponseWriter, *http.Request) {
		f.store.pass(2 * time.Minute) // this request took longer than the lease
		f.round(d)
	})
	f.round(d)
	sent := r.requests()
	require.Len(t, sent, 2)
	require.Equal(t, sent[0].raw, sent[1].raw)
	require.Equal(t, sent[0].header.Get("webhook-id"), sent[1].header.Get("webhook-id"))
	all := f.deliveries(e.ID)
	require.Len(t, all, 1)
	require.EqualValues(t, 1, all[0].Attempts)
	after := must.Get(f.store.FindEndpoint(ctx, e.ID))(t)
	require.Equal(t, must.Get(f.store.EventHead(ctx))(t), after.Position)
}

// TestDispatcher_SendsNothingToAnUntrustedCertificate checks that a receiver must have a valid
// certificate.
func TestDispatcher_SendsNothingToAnUntrustedCertificate(t *testing.T) {
	f := newFixture(t, sqliteFile(t))
	r := newReceiver(t, nil)
	e, _ := f.endpoint(r.URL, webhook.Change{})
	f.orders(f.sale(), 1)
	f.round(f.dispatcher())
	require.Equal(t, webhook.BadTLS, f.deliveries(e.ID)[0].Problem)
	require.Empty(t, r.requests())
}

// counts are the attempts by their problem, and the dead deliveries that were counted last.
type counts struct {
	attempts map[webhook.Problem]int
	dead     int64
}

func (c *counts) Attempted(p webhook.Problem) { c.attempts[p]++ }

func (c *counts) CountedDead(n int64) { c.dead = n }

// TestDispatcher_SendsNothingWithoutTheSecretOrTheEvents checks that nothing is sent where the
// secret is sealed with another key, until the key is back. A delivery whose events were deleted is
// dead at once, and a later event is sent. Both are counted, and an operator reads of the dead one
// in the log.
func TestDispatcher_SendsNothingWithoutTheSecretOrTheEvents(t *testing.T) {
	f := newStoppedFixture(t)
	r := newReceiver(t, nil)
	e, _ := f.endpoint(r.URL, webhook.Change{MaxBatch: new(int64(10))})
	sale := f.sale()
	f.orders(sale, 1)
	keys := f.keys
	f.keys.Keys = must.Get(auth.NewPhones(auth.DerivedPhoneKey([]byte("another secret"))))(t)
	c := &counts{attempts: map[webhook.Problem]int{}}
	d := f.dispatcher(r)
	d.Metrics, d.Log = c, slog.New(slog.NewTextHandler(&f.log, nil))
	f.round(d)
	first := f.deliveries(e.ID)[0]
	require.Equal(t, []any{webhook.Pending, webhook.BadSecret, 0},
		[]any{first.State, first.Problem, first.Status})

	d.Secrets = keys
	must.Get(f.store.Forget(t.Context(), retention.Events, time.Now().AddDate(1, 0, 0), 100))(t)
	sns := f.orders(sale, 1)
	f.store.pass(time.Minute)
	f.round(d)
	first = f.deliveries(e.ID)[0]
	require.Equal(t, []any{webhook.Dead, webhook.EventsGone, int64(2)},
		[]any{first.State, first.Problem, first.Attempts})
	require.Contains(t, f.log.String(), "webhook delivery is dead")
	require.Empty(t, r.requests())
	f.store.pass(time.Minute)
	f.round(d)
	require.Len(t, r.items(), 1)
	require.Equal(t, sns[0], r.items()[0].OrderSn)
	d.CountDead(t.Context())
	require.Equal(t, counts{map[webhook.Problem]int{
		webhook.BadSecret: 1, webhook.EventsGone: 1, webhook.NoProblem: 1,
	}, 1}, *c)
}

// TestDispatcher_RotatedSecretsOverlap checks that requests verify with both secrets for a day
// after a rotation, and then with the new one only.
func TestDispatcher_RotatedSecretsOverlap(t *testing.T) {
	ctx, f := t.Context(), newStoppedFixture(t)
	r := newReceiver(t, nil)
	e, old := f.endpoint(r.URL, webhook.Change{})
	sale := f.sale()
	f.orders(sale, 1)
	d := f.dispatcher(r)
	f.round(d)
	_, fresh, err := f.service.Change(ctx, merchant(), e.ID, webhook.Change{RotateSecret: true})
	require.NoError(t, err)
	require.NotEqual(t, old, fresh)
	require.Contains(t, f.log.String(), `msg="webhook changed" endpoint=`+e.ID+
		" fields=[secret] actor_id=70 role=merchant")
	for _, secret := range []string{old, fresh, r.URL} {
		require.NotContains(t, f.log.String(), secret)
	}
	f.orders(sale, 1)
	f.round(d)
	f.store.pass(webhook.SecretOverlap)
	f.orders(sale, 1)
	f.round(d)
	sent := r.requests()
	require.Len(t, sent, 3)
	for i, want := range [][2]bool{{true, false}, {true, true}, {false, true}} {
		require.Equal(t, want, [2]bool{verifies(old, sent[i]), verifies(fresh, sent[i])}, i)
	}
}

// TestDispatcher_SignsForAReceiverThatMissedTwoRotations checks that requests verify with the
// receiver's secret although two rotations did not reach it. They also verify with the secrets of
// the last two rotations. No former secret verifies after a day.
func TestDispatcher_SignsForAReceiverThatMissedTwoRotations(t *testing.T) {
	f := newStoppedFixture(t)
	r := newReceiver(t, nil)
	e, first := f.endpoint(r.URL, webhook.Change{})
	secrets := []string{first}
	sale, d := f.sale(), f.dispatcher(r)
	verified := func() (by []bool) {
		f.orders(sale, 1)
		f.round(d)
		sent := r.requests()
		for _, secret := range secrets {
			by = append(by, verifies(secret, sent[len(sent)-1]))
		}
		return by
	}
	for _, want := range [][]bool{{true, true}, {true, true, true}, {true, false, true, true}} {
		_, secret, err := f.service.Change(t.Context(), merchant(), e.ID,
			webhook.Change{RotateSecret: true})
		require.NoError(t, err)
		secrets = append(secrets, secret)
		require.Equal(t, want, verified())
		f.store.pass(time.Hour)
	}
	f.store.pass(webhook.SecretOverlap)
	require.Equal(t, []bool{false, false, false, true}, verified())
}

var backlog = flag.Int("webhook.backlog", 6_000,
	"orders, of two sales, that TestDispatcher_BacklogReachesALimitedReceiver sends")

// TestDispatcher_BacklogReachesALimitedReceiver has two dispatchers share a backlog, on each
// database. It arrives whole and in order per sale, no faster than the endpoint's rate.
func TestDispatcher_BacklogReachesALimitedReceiver(t *testing.T) {
	for name, dsn := range map[string]func(testing.TB) string{
		"SQLite":  sqliteFile,
		"MariaDB": func(t testing.TB) string { return env.MariaDB(t).NewDatabase(t) },
		"MySQL":   func(t testing.TB) string { return env.MySQL(t).NewDatabase(t) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, dsn(t))
			r := newReceiver(t, nil)
			orders := *backlog / 2 // of each of two sales
			batch, rate := int64(webhook.MaxBatch), int64(20)
			e, secret := f.endpoint(r.URL, webhook.Change{MaxBatch: &batch, MaxPerSecond: &rate})
			r.expect(secret)
			want := map[string][]string{}
			for range 2 {
				sale := f.sale()
				id := strconv.FormatInt(sale.GoodsID, 10)
				sns := f.orders(sale, orders)
				f.cancel(sale, sns[:100])
				want[id] = append([]string{"sale.exposed "}, sns...)
			}
			total := 2 * (1 + orders + 100)
			requests := (total + int(batch) - 1) / int(batch)
			f.run(func() bool {
				return len(r.requests()) >= requests
			}, f.dispatcher(r), f.dispatcher(r))
			items, last, created := r.items(), int64(0), map[string][]string{}
			require.Len(t, items, total)
			for _, item := range items {
				id := must.Get(strconv.ParseInt(item.ID, 10, 64))(t)
				require.Greater(t, id, last, "in order, and none twice")
				last = id
				switch item.Type {
				case event.SaleExposed:
					created[item.GoodsID] = append(created[item.GoodsID], "sale.exposed ")
				case event.OrderCreated:
					created[item.GoodsID] = append(created[item.GoodsID], item.OrderSn)
				default:
					require.Contains(t, created[item.GoodsID], item.OrderSn)
				}
			}
			require.Equal(t, want, created, "in the order of each sale")
			sent := r.requests()
			require.Len(t, sent, requests)
			least := time.Duration(len(sent)-1) * time.Second / time.Duration(rate)
			require.GreaterOrEqual(t, sent[len(sent)-1].at.Sub(sent[0].at), least*9/10)
			require.Len(t, f.deliveries(e.ID), len(sent), "one attempt each")
		})
	}
}

// TestDispatcher_DisabledAndDeletedEndpointsGetNothing checks that both end the sending, and that a
// disabled one goes on where it was.
func TestDispatcher_DisabledAndDeletedEndpointsGetNothing(t *testing.T) {
	ctx, f := t.Context(), newFixture(t, sqliteFile(t))
	r, gone := newReceiver(t, nil), newReceiver(t, nil)
	e, _ := f.endpoint(r.URL, webhook.Change{Enabled: new(false)})
	deleted, _ := f.endpoint(gone.URL, webhook.Change{})
	sns := f.orders(f.sale(), 3)
	require.NoError(t, f.service.Delete(ctx, merchant(), deleted.ID))
	d := f.dispatcher(r, gone)
	f.round(d)
	require.Empty(t, append(r.requests(), gone.requests()...))
	_, _, err := f.service.Change(ctx, merchant(), e.ID, webhook.Change{Enabled: new(true)})
	require.NoError(t, err)
	f.round(d)
	require.Len(t, r.items(), len(sns)+1)
	_, err = f.service.Get(ctx, merchant(), deleted.ID)
	require.Equal(t, apierror.NotFound, apierror.ReasonOf(err))
}

// TestDispatcher_SlowReceiverHasASlotForOneAttempt checks that an endpoint whose receiver takes
// seconds for each answer leaves its slot after an attempt. With 200 of them, the others wait for
// each to have its turn.
func TestDispatcher_SlowReceiverHasASlotForOneAttempt(t *testing.T) {
	t.Parallel()
	f := newStoppedFixture(t)
	r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(3100 * time.Millisecond)
		w.WriteHeader(http.StatusNoContent)
	})
	f.endpoint(r.URL, webhook.Change{MaxBatch: new(int64(1))})
	f.orders(f.sale(), 3)
	d := f.dispatcher(r)
	for round := range 2 {
		f.round(d)
		require.Len(t, r.requests(), round+1)
	}
}

// TestDispatcher_FailingEndpointsLeaveSlotsToTheOthers checks that endpoints whose last attempt
// failed leave slots to an endpoint that does not fail, although it was served after them.
func TestDispatcher_FailingEndpointsLeaveSlotsToTheOthers(t *testing.T) {
	f := newStoppedFixture(t)
	broken, r := newReceiver(t, answerStatus(http.StatusBadGateway)), newReceiver(t, nil)
	for i := range webhook.Slots + 1 {
		by := seckill.Actor{ID: strconv.Itoa(1000 + i), Role: seckill.Operator} // gets all events
		_, _, err := f.service.Create(t.Context(), by, webhook.Change{URL: &broken.URL})
		require.NoError(t, err)
	}
	sale, d := f.sale(), f.dispatcher(broken, r)
	f.place()
	for attempt := range 2 {
		f.round(d)
		f.round(d)
		require.Equal(t, (attempt+1)*(webhook.Slots+1), len(broken.requests()))
		f.store.pass(10 * time.Minute)
	}
	healthy, _ := f.endpoint(r.URL, webhook.Change{})
	sns := f.orders(sale, 2)
	f.round(d)
	f.round(d)
	f.store.pass(time.Second)
	f.cancel(sale, sns[:1])
	f.round(d) // serves the healthy endpoint alone, after all others
	require.Len(t, r.items(), 3)
	f.store.pass(10 * time.Minute)
	f.cancel(sale, sns[1:])

	first, second := d.Claim(t.Context()), d.Claim(t.Context())
	require.Less(t, len(first), webhook.Slots)
	for _, e := range first {
		require.False(t, e.FailingSince.IsZero())
	}
	require.Len(t, second, 1)
	require.Equal(t, healthy.ID, second[0].ID)
}

// polledStore counts the polls of a dispatcher. No endpoint is due.
type polledStore struct {
	webhook.DispatchStore
	polls atomic.Int64
}

func (s *polledStore) Now(context.Context) (time.Time, error) { return time.Now(), nil }

func (s *polledStore) CountDeadDeliveries(context.Context) (int64, error) { return 0, nil }

func (s *polledStore) DueEndpoints(
	context.Context, time.Time, bool, int,
) ([]webhook.Endpoint, error) {
	s.polls.Add(1)
	return nil, nil
}

// TestDispatcher_PlacedEventsAreSentAtOnce checks that new events do not wait for the next poll.
func TestDispatcher_PlacedEventsAreSentAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, due := &polledStore{}, make(chan struct{}, 1)
		d := &webhook.Dispatcher{
			Store: s, Sender: webhook.NewSender(webhook.Allow{}, nil), Due: due,
			Log: slog.New(slog.DiscardHandler),
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- d.Run(ctx) }()
		synctest.Wait()
		polled, began := s.polls.Load(), time.Now()
		sequencing := make(chan error, 1)
		go func() {
			sequencing <- (&event.Sequencer{Store: placesOne{}, Placed: due}).Run(ctx)
		}()
		synctest.Wait()
		require.Equal(t, polled+1, s.polls.Load())
		require.Zero(t, time.Since(began))
		cancel()
		require.NoError(t, <-done)
		require.NoError(t, <-sequencing)
	})
}

// placesOne has one row of events to place in each round.
type placesOne struct{}

func (placesOne) PlaceEvents(context.Context, int) (int, error) { return 1, nil }
