package sqlstore

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/event"
	"flashsale.dev/seckill/internal/order/retention"
	"flashsale.dev/seckill/internal/seckill/salechange"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/webhook"
)

// endpoint creates an endpoint of merchant 1 that is due.
func (h fixture) endpoint(id string) webhook.Endpoint {
	h.t.Helper()
	e := webhook.Endpoint{
		ID: id, OwnerID: "1", URL: "https://example.org/" + id, Types: []event.Type{},
		MaxBatch: 10, MaxPerSecond: 5, Enabled: true, Secret: "sealed", CreatedAt: today,
		UpdatedAt: today, DueAt: today,
	}
	require.NoError(h.t, h.CreateEndpoint(h.t.Context(), &e))
	return must.Get(h.FindEndpoint(h.t.Context(), id))(h.t)
}

// claim takes the lease of an endpoint for a minute.
func (h fixture) claim(e webhook.Endpoint, lease string, now time.Time) webhook.Endpoint {
	h.t.Helper()
	require.True(h.t, must.Get(h.ClaimEndpoint(h.t.Context(), e, lease, now,
		now.Add(time.Minute)))(h.t))
	return must.Get(h.LeasedEndpoint(h.t.Context(), e.ID, lease))(h.t)
}

// pending stores a pending delivery of an endpoint.
func (h fixture) pending(e webhook.Endpoint, id string) webhook.Delivery {
	h.t.Helper()
	d := webhook.Delivery{
		ID: id, EndpointID: e.ID, After: e.Position, To: e.Position + 1, Types: []event.Type{},
		Events: 1, State: webhook.Pending, CreatedAt: today, NextAt: today,
	}
	require.NoError(h.t, h.SaveProgress(h.t.Context(), e, &d))
	return d
}

// dead stores a dead delivery of an endpoint that ended at a moment.
func (h fixture) dead(e webhook.Endpoint, id string, ended time.Time) webhook.Delivery {
	h.t.Helper()
	d := h.pending(e, id)
	d.State, d.Attempts, d.Status, d.Problem = webhook.Dead, 30, 500, webhook.BadStatus
	d.LastAt, d.NextAt, d.EndedAt = ended, time.Time{}, ended
	require.NoError(h.t, h.SaveProgress(h.t.Context(), e, &d))
	return d
}

// TestEndpoints_AreStoredAndListedByOwner checks each field, the pages of an owner and of all, the
// change of an endpoint, and its end together with its deliveries. The deliveries of another one
// stay as they are. An operator with a merchant's id owns an endpoint of all sales.
func (h fixture) TestEndpoints_AreStoredAndListedByOwner(t *testing.T) {
	ctx := t.Context()
	h.exposed(3, 1)
	h.placeEvents()
	made := webhook.Endpoint{
		ID: "e2", OwnerID: "1", AllSales: true, URL: "https://example.org/?a=1",
		Types: []event.Type{event.OrderPaid}, MaxBatch: 7, MaxPerSecond: 3, Enabled: true,
		Secret: "sealed", OldSecrets: []string{}, CreatedAt: today, UpdatedAt: minutes(1),
		DueAt: minutes(2),
	}
	require.NoError(t, h.CreateEndpoint(ctx, &made))
	require.Equal(t, must.Get(h.EventHead(ctx))(t), made.Position,
		"it gets what happens from now on")
	require.EqualValues(t, 1, made.Position)
	require.Equal(t, made, must.Get(h.FindEndpoint(ctx, "e2"))(t))
	first, last := h.endpoint("e1"), h.endpoint("e3")
	ids := func(owner, after string, limit int) (list []string) {
		for _, e := range must.Get(h.EndpointsOf(ctx, owner, after, limit))(t) {
			list = append(list, e.ID)
		}
		return list
	}
	require.Equal(t, []string{"e1", "e3"}, ids("1", "", 10))
	require.Equal(t, []string{"e3"}, ids("1", "e1", 10))
	require.Equal(t, []string{"e1", "e2"}, ids("", "", 2))
	served := h.claim(first, "l", today)
	ended := h.dead(served, "d0", today)
	h.pending(served, "d1")
	other := h.pending(h.claim(last, "m", today), "d2")
	last = must.Get(h.FindEndpoint(ctx, "e3"))(t)
	former := []string{strings.Repeat("a", 116), strings.Repeat("b", 116)}
	changed := must.Get(h.ChangeEndpoint(ctx, "e1", minutes(3), func(e *webhook.Endpoint) {
		e.URL, e.OldSecrets, e.OldSecretUntil = "https://other.example/", former, minutes(60)
		e.Secret, e.Enabled = "sealed anew", false
	}))(t)
	kept := must.Get(h.FindEndpoint(ctx, "e1"))(t)
	require.Equal(t, changed, kept)
	require.Equal(t, []any{
		"https://other.example/", "sealed anew", former, minutes(60), false,
		minutes(3),
	}, []any{
		kept.URL, kept.Secret, kept.OldSecrets, kept.OldSecretUntil,
		kept.Enabled, kept.DueAt,
	})
	require.Equal(t, minutes(3), must.Get(h.PendingDelivery(ctx, "e1"))(t).NextAt,
		"the change may be the repair")
	require.Equal(t, []webhook.Delivery{ended},
		must.Get(h.Deliveries(ctx, "e1", webhook.Dead, "", 9))(t))
	require.NoError(t, h.DeleteEndpoint(ctx, "e1", today))
	require.ErrorIs(t, h.DeleteEndpoint(ctx, "e1", today), webhook.ErrNoSuchEndpoint)
	_, err := h.FindEndpoint(ctx, "e1")
	require.ErrorIs(t, err, webhook.ErrNoSuchEndpoint)
	_, err = h.ChangeEndpoint(ctx, "e1", today, func(*webhook.Endpoint) {})
	require.ErrorIs(t, err, webhook.ErrNoSuchEndpoint)
	_, err = h.RetryDelivery(ctx, "e1", "d1", today)
	require.ErrorIs(t, err, webhook.ErrNoSuchEndpoint)
	require.Empty(t, must.Get(h.Deliveries(ctx, "e1", "", "", 10))(t))
	require.Equal(t, last, must.Get(h.FindEndpoint(ctx, "e3"))(t))
	require.Equal(t, other, must.Get(h.PendingDelivery(ctx, "e3"))(t))
}

// TestDueEndpoints_HaveSomethingToSend checks which endpoints a dispatcher gets.
func (h fixture) TestDueEndpoints_HaveSomethingToSend(t *testing.T) {
	ctx := t.Context()
	e, off, later := h.endpoint("e"), h.endpoint("off"), h.endpoint("later")
	due := func(now time.Time) (list []string) {
		for _, e := range must.Get(h.DueEndpoints(ctx, now, true, 10))(t) {
			list = append(list, e.ID)
		}
		return list
	}
	must.Get(h.ChangeEndpoint(ctx, off.ID, today, func(e *webhook.Endpoint) {
		e.Enabled = false
	}))(t)
	waiting := h.claim(later, "l", today)
	waiting.DueAt = minutes(5)
	require.NoError(t, h.SaveProgress(ctx, waiting, nil))
	require.NoError(t, h.ReleaseEndpoint(ctx, later.ID, "l"))
	require.Empty(t, due(today), "nothing happened")
	h.exposed(3, 1)
	h.placeEvents()
	require.Equal(t, []string{"e"}, due(today))
	require.Equal(t, []string{"e", "later"}, due(minutes(5)))
	must.Get(h.ChangeEndpoint(ctx, later.ID, minutes(60), func(*webhook.Endpoint) {}))(t)
	require.Equal(t, []string{"e", "later"}, due(today), "the clock was set back since the change")
	must.Get(h.ChangeEndpoint(ctx, later.ID, today, func(e *webhook.Endpoint) {
		e.Enabled = false
	}))(t)
	leased := h.claim(e, "l", today)
	require.Empty(t, due(today), "somebody serves it")
	require.Equal(t, []string{"e"}, due(minutes(1)), "the lease has ended")
	leased.Position = must.Get(h.EventHead(ctx))(t)
	d := h.dead(leased, "d", today)
	require.NoError(t, h.ReleaseEndpoint(ctx, e.ID, "l"))
	require.Empty(t, due(today), "it has everything")
	must.Get(h.RetryDelivery(ctx, e.ID, d.ID, today))(t)
	require.Equal(t, []string{"e"}, due(today), "a delivery to send again")
}

// TestDueEndpoints_IdleOnesMoveToTheHead checks that an event of one merchant makes no endpoint of
// another due. Idle endpoints have the event's position then, so that it can be deleted, unless
// somebody serves them. An operator's endpoint of all sales is due, and so is one whose last
// attempt failed, because its events may be deleted.
func (h fixture) TestDueEndpoints_IdleOnesMoveToTheHead(t *testing.T) {
	ctx := t.Context()
	create := func(id string, allSales bool) webhook.Endpoint {
		e := h.endpoint(id)
		require.NoError(t, h.DeleteEndpoint(ctx, id, today))
		e.OwnerID, e.AllSales = "2", allSales
		require.NoError(t, h.CreateEndpoint(ctx, &e))
		return e
	}
	h.endpoint("e")
	create("idle", false)
	create("operator", true)
	h.claim(create("served", false), "l", today)
	failing := h.claim(create("failing", false), "m", today)
	failing.FailingSince = today
	require.NoError(t, h.SaveProgress(ctx, failing, nil))
	require.NoError(t, h.ReleaseEndpoint(ctx, failing.ID, "m"))
	h.exposed(3, 1)
	h.placeEvents()
	due := func(now time.Time) (ids []string) {
		for _, e := range must.Get(h.DueEndpoints(ctx, now, true, 10))(t) {
			ids = append(ids, e.ID)
		}
		return ids
	}
	position := func(id string) int64 { return must.Get(h.FindEndpoint(ctx, id))(t).Position }
	require.ElementsMatch(t, []string{"e", "operator", "failing"}, due(today))
	require.EqualValues(t, 1, position("idle"))
	require.Zero(t, position("served"))
	require.ElementsMatch(t, []string{"e", "operator", "failing"}, due(minutes(2)))
	require.EqualValues(t, 1, position("served"), "its lease has ended")
}

// TestDueEndpoints_AllGetTheirTurn checks that endpoints with endless events starve no other, also
// while each has a delivery to send again.
func (h fixture) TestDueEndpoints_AllGetTheirTurn(t *testing.T) {
	ctx, served := t.Context(), map[string]int{}
	for i := range 6 {
		e := h.claim(h.endpoint(fmt.Sprint("e", i)), "l", today)
		must.Get(h.RetryDelivery(ctx, e.ID, h.dead(e, "d"+e.ID, today).ID, today))(t)
		require.NoError(t, h.ReleaseEndpoint(ctx, e.ID, "l"))
	}
	h.exposed(3, 1)
	h.placeEvents()
	for round := range 3 {
		now := minutes(round + 1)
		for _, e := range must.Get(h.DueEndpoints(ctx, now, true, 2))(t) {
			e = h.claim(e, "next", now)
			require.NoError(t, h.SaveProgress(ctx, e, nil))
			require.NoError(t, h.ReleaseEndpoint(ctx, e.ID, "next"))
			served[e.ID]++
		}
	}
	require.Len(t, served, 6)
}

// TestClaimEndpoint_OneOfManyWins checks that of concurrent dispatchers one serves an endpoint, and
// that one whose lease is lost stores nothing.
func (h fixture) TestClaimEndpoint_OneOfManyWins(t *testing.T) {
	ctx, e := t.Context(), h.endpoint("e")
	var won atomic.Int64
	var g sync.WaitGroup
	for i := range 8 {
		g.Go(func() {
			ok, err := h.ClaimEndpoint(ctx, e, fmt.Sprint("lease", i), today, minutes(1))
			if err == nil && ok {
				won.Add(1)
			}
		})
	}
	g.Wait()
	require.EqualValues(t, 1, won.Load())
	was := must.Get(h.FindEndpoint(ctx, "e"))(t)
	now := h.claim(was, "next", minutes(1))
	was.Position = 9
	require.ErrorIs(t, h.SaveProgress(ctx, was, &webhook.Delivery{ID: "d", EndpointID: "e"}),
		webhook.ErrLeaseLost)
	_, err := h.LeasedEndpoint(ctx, "e", was.Lease)
	require.ErrorIs(t, err, webhook.ErrLeaseLost)
	require.NoError(t, h.ReleaseEndpoint(ctx, "e", was.Lease), "no error")
	require.Equal(t, now, must.Get(h.LeasedEndpoint(ctx, "e", "next"))(t))
	require.False(t, must.Get(h.ClaimEndpoint(ctx, now, "third", minutes(1), minutes(2)))(t))
	require.Empty(t, must.Get(h.Deliveries(ctx, "e", "", "", 10))(t))
}

// TestDeliveries_AreListedRetriedAndForgotten checks the states of deliveries: which one is sent
// next, which one can be sent again, and that old ones are deleted.
func (h fixture) TestDeliveries_AreListedRetriedAndForgotten(t *testing.T) {
	ctx := t.Context()
	e := h.claim(h.endpoint("e"), "l", today)
	_, err := h.PendingDelivery(ctx, "e")
	require.ErrorIs(t, err, webhook.ErrNoSuchDelivery)
	first, second := h.dead(e, "d1", minutes(1)), h.dead(e, "d2", minutes(2))
	next := h.pending(e, "d3")
	list := func(state webhook.State, before string, limit int) []webhook.Delivery {
		return must.Get(h.Deliveries(ctx, "e", state, before, limit))(t)
	}
	require.Equal(t, []webhook.Delivery{next, second, first}, list("", "", 10))
	require.Equal(t, []webhook.Delivery{first}, list("", "d2", 10))
	require.Equal(t, []webhook.Delivery{second}, list(webhook.Dead, "", 1))
	require.EqualValues(t, 2, must.Get(h.CountDeadDeliveries(ctx))(t))
	require.Equal(t, next, must.Get(h.PendingDelivery(ctx, "e"))(t))
	again := must.Get(h.RetryDelivery(ctx, "e", "d1", minutes(3)))(t)
	require.Equal(t, []any{webhook.Pending, true, minutes(3)},
		[]any{again.State, again.Retried, again.NextAt})
	require.Equal(t, again, must.Get(h.PendingDelivery(ctx, "e"))(t), "before the others")
	require.Equal(t, again, must.Get(h.RetryDelivery(ctx, "e", "d1", minutes(3)))(t))
	require.EqualValues(t, 1, must.Get(h.FindEndpoint(ctx, "e"))(t).Retries)
	h.endpoint("other")
	for _, of := range [][2]string{{"e", "none"}, {"other", "d2"}} {
		_, err = h.RetryDelivery(ctx, of[0], of[1], minutes(3))
		require.ErrorIs(t, err, webhook.ErrNoSuchDelivery, of)
	}
	require.Empty(t, must.Get(h.Deliveries(ctx, "other", "", "", 10))(t))
	_, err = h.PendingDelivery(ctx, "other")
	require.ErrorIs(t, err, webhook.ErrNoSuchDelivery)
	again.State, again.EndedAt = webhook.Delivered, minutes(4)
	require.NoError(t, h.SaveProgress(ctx, e, &again))
	require.Zero(t, must.Get(h.FindEndpoint(ctx, "e"))(t).Retries)
	_, err = h.RetryDelivery(ctx, "e", "d1", minutes(4))
	requireConflict(t, err, "it succeeded")
	require.Zero(t, must.Get(h.Forget(ctx, retention.Deliveries, minutes(2), 10))(t))
	require.Equal(t, 1, must.Get(h.Forget(ctx, retention.Deliveries, minutes(9), 1))(t))
	require.Equal(t, 1, must.Get(h.Forget(ctx, retention.Deliveries, minutes(9), 10))(t))
	require.Equal(t, []webhook.Delivery{next}, list("", "", 10), "it has not ended")
}

// TestSaveProgress_KeepsTheOwnersChange changes an endpoint after a dispatcher has read it. What
// the dispatcher stores then undoes nothing of the change, and counts where the endpoint was read
// since.
func (h fixture) TestSaveProgress_KeepsTheOwnersChange(t *testing.T) {
	ctx, other := t.Context(), h.endpoint("other")
	read := h.claim(h.endpoint("e"), "l", today)
	d := h.pending(read, "d")
	changed := must.Get(h.ChangeEndpoint(ctx, "e", minutes(1), func(e *webhook.Endpoint) {
		e.URL, e.Enabled, e.FailingSince = "https://example.org/repaired", true, minutes(1)
	}))(t)
	waits := read
	waits.DueAt = minutes(70)
	require.ErrorIs(t, h.SaveProgress(ctx, waits, nil), webhook.ErrLeaseLost)
	require.Equal(t, changed, must.Get(h.FindEndpoint(ctx, "e"))(t), "it waited for a delivery")

	failed, dead := read, d
	failed.Position, failed.DueAt = d.To, minutes(70)
	failed.FailingSince, failed.Enabled = today, false
	dead.State, dead.Attempts, dead.Status, dead.Problem = webhook.Dead, 30, 500, webhook.BadStatus
	dead.LastAt, dead.NextAt, dead.EndedAt = today, time.Time{}, today
	saved := dead
	require.NoError(t, h.SaveProgress(ctx, failed, &saved))
	require.Equal(t, changed, must.Get(h.FindEndpoint(ctx, "e"))(t), "an attempt failed")
	require.Equal(t, saved, must.Get(h.PendingDelivery(ctx, "e"))(t))
	d.Attempts, d.Status, d.Problem, d.LastAt, d.NextAt = 30, 500, webhook.BadStatus, today, minutes(1)
	require.Equal(t, d, saved)

	failed.UpdatedAt = changed.UpdatedAt
	again := dead
	require.NoError(t, h.SaveProgress(ctx, failed, &again))
	require.Equal(t, dead, again, "the changed endpoint failed")
	require.False(t, must.Get(h.FindEndpoint(ctx, "e"))(t).Enabled)

	sent := h.pending(failed, "d2")
	changed = must.Get(h.ChangeEndpoint(ctx, "e", minutes(2), func(e *webhook.Endpoint) {
		e.Enabled, e.MaxBatch = true, 3
	}))(t)
	sent.State, sent.Attempts = webhook.Delivered, 1
	sent.NextAt, sent.EndedAt = time.Time{}, minutes(2)
	read.Position, read.DueAt, read.FailingSince = 9, minutes(1), time.Time{}
	require.NoError(t, h.SaveProgress(ctx, read, &sent))
	changed.Position, changed.FailingSince = 9, time.Time{}
	require.Equal(t, changed, must.Get(h.FindEndpoint(ctx, "e"))(t), "an attempt succeeded")
	require.Equal(t, other, must.Get(h.FindEndpoint(ctx, "other"))(t))
}

// TestSaveProgress_KeepsADeliveryOnDemandDue checks that a delivery to send again does not wait for
// the one at the endpoint's position, which failed. It does not wait after an attempt during which
// the owner changed the endpoint, either.
func (h fixture) TestSaveProgress_KeepsADeliveryOnDemandDue(t *testing.T) {
	ctx, e := t.Context(), h.claim(h.endpoint("e"), "l", today)
	dead, next := h.dead(e, "d1", today), h.pending(e, "d2")
	again := must.Get(h.RetryDelivery(ctx, "e", dead.ID, minutes(3)))(t)
	failing := e
	failing.DueAt, next.NextAt, next.Attempts = minutes(70), minutes(70), 1
	require.NoError(t, h.SaveProgress(ctx, failing, &next))
	require.Equal(t, minutes(3), must.Get(h.FindEndpoint(ctx, "e"))(t).DueAt)

	must.Get(h.ChangeEndpoint(ctx, "e", minutes(4), func(*webhook.Endpoint) {}))(t)
	again.State, again.NextAt, again.EndedAt = webhook.Dead, time.Time{}, minutes(4)
	require.NoError(t, h.SaveProgress(ctx, e, &again))
	require.Equal(t, again, must.Get(h.PendingDelivery(ctx, "e"))(t))
	require.True(t, again.Retried)
	require.EqualValues(t, 1, must.Get(h.FindEndpoint(ctx, "e"))(t).Retries)
}

// TestForgetEvents_KeepsWhatAnEndpointLacks checks that events remain until each enabled endpoint
// has them.
func (h fixture) TestForgetEvents_KeepsWhatAnEndpointLacks(t *testing.T) {
	ctx := t.Context()
	e := h.endpoint("e")
	h.exposed(3, 1)
	h.placeEvents()
	old := minutes(24 * 60)
	require.Zero(t, must.Get(h.Forget(ctx, retention.Events, old, 10))(t))
	e = h.claim(e, "l", today)
	e.Position = 1
	require.NoError(t, h.SaveProgress(ctx, e, nil))
	require.Equal(t, 1, must.Get(h.Forget(ctx, retention.Events, old, 10))(t))
	h.exposed(3, 1)
	h.placeEvents()
	require.Zero(t, must.Get(h.Forget(ctx, retention.Events, old, 10))(t))
	must.Get(h.ChangeEndpoint(ctx, "e", today, func(e *webhook.Endpoint) { e.Enabled = false }))(t)
	require.Equal(t, 1, must.Get(h.Forget(ctx, retention.Events, old, 10))(t),
		"a disabled one keeps none")
}

// TestForgetEvents_SlowEndpointKeepsThemForDays checks that an endpoint that is behind keeps no
// event for ever.
func (h fixture) TestForgetEvents_SlowEndpointKeepsThemForDays(t *testing.T) {
	h.endpoint("slow")
	sale := h.exposed(3, 1)
	h.placeEvents()
	forget := func(before time.Time) int {
		return must.Get(h.Forget(t.Context(), retention.Events, before, 10))(t)
	}
	end := h.sale(sale.GoodsID).UpdatedAt.Add(keepForEndpoints)
	require.Zero(t, forget(end))
	require.Equal(t, 1, forget(end.Add(time.Millisecond)))
}

// TestCreateEndpoint_RepeatedAfterALostCommit creates as many endpoints as an owner may have, each
// twice: the answer of MySQL to the first commit got lost.
func (h fixture) TestCreateEndpoint_RepeatedAfterALostCommit(t *testing.T) {
	for i := range webhook.MaxEndpoints {
		e := h.endpoint(fmt.Sprintf("w-%02d", i))
		again := e
		again.Position = -1
		require.NoError(t, h.CreateEndpoint(t.Context(), &again))
		require.Equal(t, e.Position, again.Position)
	}
	all := must.Get(h.EndpointsOf(t.Context(), "1", "", 100))(t)
	require.Len(t, all, webhook.MaxEndpoints)
	var entries int64
	require.NoError(t, h.db.Model(&auditRow{}).Count(&entries).Error)
	require.EqualValues(t, webhook.MaxEndpoints, entries, "each is in the audit log once")
}

// TestCreateEndpoint_CountsConcurrentCalls creates more endpoints at once than an owner may have: a
// merchant's and an operator's with the same id, who count apart, and one of another merchant.
func (h fixture) TestCreateEndpoint_CountsConcurrentCalls(t *testing.T) {
	const calls = webhook.MaxEndpoints + 10
	var stored, refused [2]atomic.Int64
	var all errgroup.Group
	for i := range 2 * calls {
		owner := i % 2
		all.Go(func() error {
			e := webhook.Endpoint{
				ID: fmt.Sprintf("e%02d", i), OwnerID: "1", AllSales: owner == 1,
				URL: "https://example.org/", CreatedAt: today,
			}
			err := retry(t.Context(), func() error { return h.CreateEndpoint(t.Context(), &e) })
			switch {
			case err == nil:
				stored[owner].Add(1)
			case apierror.ReasonOf(err) == apierror.Conflict:
				refused[owner].Add(1)
			default:
				return err
			}
			return nil
		})
	}
	require.NoError(t, all.Wait())
	for owner := range stored {
		require.EqualValues(t, webhook.MaxEndpoints, stored[owner].Load())
		require.EqualValues(t, calls-webhook.MaxEndpoints, refused[owner].Load())
	}
	require.Len(t, must.Get(h.EndpointsOf(t.Context(), "", "", 2*calls))(t), 2*webhook.MaxEndpoints)
	another := webhook.Endpoint{
		ID: "another", OwnerID: "2", URL: "https://example.org/", CreatedAt: today,
	}
	require.NoError(t, h.CreateEndpoint(t.Context(), &another))
}

// TestAuditTrail_IsOfOneMerchant changes webhooks of two merchants and of an operator with a
// merchant's id. An id may have characters that JSON and LIKE treat specially.
func (h fixture) TestAuditTrail_IsOfOneMerchant(t *testing.T) {
	for id, owner := range map[string]string{"e1": `a"<%_\`, "e2": "a", "e3": "b"} {
		e := webhook.Endpoint{
			ID: id, OwnerID: owner, AllSales: owner == "b", URL: "https://example.org/x",
			CreatedAt: today,
		}
		require.NoError(t, h.CreateEndpoint(t.Context(), &e))
	}
	sale := h.exposed(3, 1)
	trail := func(f salechange.AuditFilter) (list []string) {
		for _, e := range must.Get(h.AuditTrail(t.Context(), f, "", 10))(t) {
			list = append(list, fmt.Sprint(e.Action, " ", e.GoodsID, " ", e.Became["webhookId"]))
		}
		return list
	}
	require.Equal(t, []string{"createWebhook 0 e1"},
		trail(salechange.AuditFilter{MerchantID: `a"<%_\`}))
	require.Equal(t, []string{"createWebhook 0 e2"}, trail(salechange.AuditFilter{MerchantID: "a"}))
	require.Empty(t, trail(salechange.AuditFilter{MerchantID: "b"}))
	require.Len(t, trail(salechange.AuditFilter{Action: salechange.ActCreateWebhook}), 3)
	made := fmt.Sprint("create ", sale.GoodsID, " <nil>")
	require.Contains(t, trail(salechange.AuditFilter{MerchantID: sale.MerchantID}), made)
	require.Contains(t, trail(salechange.AuditFilter{GoodsID: sale.GoodsID}), made)
}
