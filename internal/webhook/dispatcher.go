package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"flashsale.dev/seckill/internal/event"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/workers"
)

const (
	// pollInterval is how often a process claims due endpoints without a signal. New events send a
	// signal; the end of a pause or of another process' lease sends none.
	pollInterval = time.Second
	// slots is how many endpoints a process serves at a time. Each mostly waits for its receiver.
	slots = 64
	// failingSlots is how many of them serve endpoints whose last attempt failed. Most of their
	// attempts take until attemptTimeout, and the other endpoints would wait for them.
	failingSlots = slots * 3 / 4
	// turn is how long an endpoint is served before a due one may have its slot. It ends after one
	// attempt if the receiver takes seconds for its answer: with many of those, the others wait for
	// each to have its turn.
	turn = 3 * time.Second
	// countInterval is the time between two counts of dead deliveries.
	countInterval = 10 * time.Second
	// storeDeadline bounds what is stored after an attempt, also while the program stops.
	storeDeadline = 5 * time.Second
	// minClockStep is the least step back of the database's clock that setBackSince reports.
	// Readings of two processes differ by less.
	minClockStep = 10 * time.Second
)

// LeaseTime is how long a lease lasts: longer than a turn and the attempt at its end.
const LeaseTime = time.Minute

// DispatchStore is what the dispatcher needs of the database.
type DispatchStore interface {
	order.Clock
	// DueEndpoints lists at most limit enabled endpoints that are due and that nobody serves, the
	// longest unserved first. Each has new events, or a delivery to send again. It lists those
	// whose last attempt failed only if failing is true.
	DueEndpoints(ctx context.Context, now time.Time, failing bool, limit int) ([]Endpoint, error)
	// ClaimEndpoint takes the lease of a due endpoint until a moment. Of concurrent callers one
	// gets true.
	ClaimEndpoint(ctx context.Context, e Endpoint, lease string, now, until time.Time) (bool, error)
	// LeasedEndpoint returns an endpoint that is enabled and still has the lease, or ErrLeaseLost.
	LeasedEndpoint(ctx context.Context, id, lease string) (Endpoint, error)
	// PendingDelivery returns the next delivery to send: one to send again on demand, else the one
	// after the endpoint's position, else ErrNoSuchDelivery.
	PendingDelivery(ctx context.Context, endpointID string) (Delivery, error)
	// SaveProgress stores the endpoint's Position, DueAt, FailingSince and Enabled, and the
	// delivery unless it is nil, in one transaction. Without the lease it stores nothing and
	// returns ErrLeaseLost. If the owner has changed the endpoint since e was read, it does the
	// same for a delivery that is nil or has no attempt. After an attempt it keeps the owner's
	// change, and makes a failed delivery pending and due, in d as well.
	SaveProgress(ctx context.Context, e Endpoint, d *Delivery) error
	// ReleaseEndpoint ends a lease. A lease that is lost is no error.
	ReleaseEndpoint(ctx context.Context, id, lease string) error
	// EventHead returns the last position that was assigned.
	EventHead(ctx context.Context) (int64, error)
	// CountDeadDeliveries counts the dead deliveries of all endpoints.
	CountDeadDeliveries(ctx context.Context) (int64, error)
}

// Metrics receives what the dispatcher counts.
type Metrics interface {
	// Attempted counts an attempt by its problem; NoProblem is a success.
	Attempted(p Problem)
	// CountedDead receives the number of dead deliveries.
	CountedDead(n int64)
}

// Opener decrypts the secret of an endpoint.
type Opener interface {
	Open(endpointID, sealed string) (string, error)
}

// Dispatcher is the worker that sends events. Any number may run.
type Dispatcher struct {
	Store   DispatchStore
	Feed    *event.Feed
	Secrets Opener
	Sender  *Sender
	Metrics Metrics // nil: nothing is counted
	// Due holds one signal that endpoints may be due; nil: the dispatcher only polls.
	Due chan struct{}
	Log *slog.Logger

	failing atomic.Int64 // endpoints that are served and whose last attempt failed
}

// Run sends until ctx ends. It then finishes the attempts that have begun, and returns nil.
func (d *Dispatcher) Run(ctx context.Context) error {
	defer d.Sender.Close()
	free := make(chan bool, slots)
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { _ = workers.Every(ctx, countInterval, d.countDead) })
	return workers.EveryAndAfter(ctx, pollInterval, d.Due, func(ctx context.Context) {
		for _, e := range d.claim(ctx, cap(free)-len(free)) {
			free <- true
			running.Go(func() {
				more := d.serve(ctx, e)
				d.end(e)
				<-free
				if more {
					workers.Signal(d.Due)
				}
			})
		}
	})
}

func (d *Dispatcher) countDead(ctx context.Context) {
	n, err := d.Store.CountDeadDeliveries(ctx)
	if err == nil && d.Metrics != nil {
		d.Metrics.CountedDead(n)
	}
	d.warn(ctx, "cannot count dead webhook deliveries, retrying", err)
}

func (d *Dispatcher) warn(ctx context.Context, what string, err error, attrs ...any) {
	if !errors.Is(err, ErrLeaseLost) {
		workers.Warn(ctx, d.Log, what, err, attrs...)
	}
}

// claim takes the leases of at most limit due endpoints.
func (d *Dispatcher) claim(ctx context.Context, limit int) (claimed []Endpoint) {
	if limit == 0 {
		return nil
	}
	now, err := d.Store.Now(ctx)
	var due []Endpoint
	if err == nil {
		due, err = d.Store.DueEndpoints(ctx, now, d.failing.Load() < failingSlots, limit)
	}
	for _, e := range due {
		fails := !e.FailingSince.IsZero()
		if fails && d.failing.Load() == failingSlots { // the next poll leaves them out
			continue
		}
		lease, won := uuid.NewString(), false
		won, err = d.Store.ClaimEndpoint(ctx, e, lease, now, now.Add(LeaseTime))
		if err != nil {
			break
		}
		if e.Lease = lease; won {
			claimed = append(claimed, e)
		}
		if won && fails {
			d.failing.Add(1)
		}
	}
	d.warn(ctx, "cannot claim webhook endpoints, retrying", err)
	return claimed
}

// end ends the service of a claimed endpoint.
func (d *Dispatcher) end(claimed Endpoint) {
	if !claimed.FailingSince.IsZero() {
		d.failing.Add(-1)
	}
}

// serve sends an endpoint's deliveries one after the other until its turn ends, until none is left,
// or until it must wait. It returns true if the turn ended and deliveries may be left.
func (d *Dispatcher) serve(ctx context.Context, claimed Endpoint) (goOn bool) {
	attrs := []any{"endpoint", claimed.ID}
	began := time.Now()
	goOn = true
	for goOn && ctx.Err() == nil && time.Since(began) < turn {
		sent := time.Now()
		e, err := d.Store.LeasedEndpoint(ctx, claimed.ID, claimed.Lease)
		if err == nil {
			goOn, err = d.step(ctx, e)
		}
		if err != nil {
			d.warn(ctx, "cannot serve a webhook endpoint, retrying", err, attrs...)
			goOn = false
			break
		}
		if goOn {
			workers.Sleep(ctx, time.Second/time.Duration(e.MaxPerSecond)-time.Since(sent))
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeDeadline)
	defer cancel()
	err := d.Store.ReleaseEndpoint(ctx, claimed.ID, claimed.Lease)
	d.warn(ctx, "cannot release a webhook endpoint", err, attrs...)
	return goOn
}

// step makes one attempt of the next delivery. It returns true if another one may follow at once.
func (d *Dispatcher) step(ctx context.Context, e Endpoint) (goOn bool, err error) {
	now, err := d.Store.Now(ctx)
	if err != nil {
		return false, err
	}
	next, err := d.Store.PendingDelivery(ctx, e.ID)
	if errors.Is(err, ErrNoSuchDelivery) {
		next, err = d.newDelivery(ctx, e, now)
	}
	if errors.Is(err, ErrNoSuchDelivery) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if waits(e, next, now) { // the endpoint was due for an attempt on demand, which is done
		e.DueAt = next.NextAt
		return false, d.Store.SaveProgress(ctx, e, nil)
	}
	return d.attempt(ctx, e, next, now)
}

// waits reports whether a delivery is in a pause between two attempts. A NextAt in the future is no
// pause if the owner's change or demand has set it: the delivery was due at once, and the
// database's clock was set back since.
func waits(e Endpoint, next Delivery, now time.Time) bool {
	return next.NextAt.After(now) && !next.Retried && !next.NextAt.Equal(e.UpdatedAt) &&
		!setBackSince(next, now)
}

// setBackSince reports whether the database's clock was set back since the last attempt of a
// delivery, or since the delivery was made. A pause that began before the step would last longer by
// the step.
func setBackSince(next Delivery, now time.Time) bool {
	last := next.LastAt
	if next.Attempts == 0 {
		last = next.CreatedAt
	}
	return last.After(now.Add(minClockStep))
}

// newDelivery stores the next delivery before its first attempt, so that every attempt has the same
// id and the same events. It returns ErrNoSuchDelivery if the endpoint has all its events.
func (d *Dispatcher) newDelivery(
	ctx context.Context, e Endpoint, now time.Time,
) (next Delivery, err error) {
	// Read the head first: events that are placed after it are not passed over.
	head, err := d.Store.EventHead(ctx)
	if err != nil {
		return next, err
	}
	items, err := d.Feed.Items(ctx, e.filter(e.Types, e.Position, head), int(e.MaxBatch))
	if err != nil {
		return next, err
	}
	if len(items) == 0 {
		e.Position = head
		if err := d.Store.SaveProgress(ctx, e, nil); err != nil {
			return next, err
		}
		return next, ErrNoSuchDelivery
	}
	last, err := strconv.ParseInt(items[len(items)-1].ID, 10, 64)
	if err != nil {
		return next, err
	}
	next = Delivery{
		ID: newID(now), EndpointID: e.ID, After: e.Position, To: last, Types: e.Types,
		Events: int64(len(items)), State: Pending, CreatedAt: now, NextAt: now,
	}
	return next, d.Store.SaveProgress(ctx, e, &next)
}

// newID makes an id that sorts by the database's time.
func newID(now time.Time) string { return seckill.NewRowID(now).String() }

// body is the body of a request.
type body struct {
	Type      string `json:"type"`      // always "events"
	Timestamp string `json:"timestamp"` // when the delivery was made
	Data      struct {
		Items []event.Item `json:"items"`
	} `json:"data"`
}

// attempt sends a delivery and stores the outcome. It returns true if another one may follow at
// once.
func (d *Dispatcher) attempt(
	ctx context.Context, e Endpoint, next Delivery, now time.Time,
) (goOn bool, err error) {
	items, err := d.Feed.Items(ctx, e.filter(next.Types, next.After, next.To), int(next.Events)+1)
	if err != nil {
		return false, err
	}
	next.Attempts, next.LastAt, next.NextAt = next.Attempts+1, now, time.Time{}
	if int64(len(items)) == next.Events {
		next.Status, next.Problem = d.send(context.WithoutCancel(ctx), e, next, items, now)
	} else {
		next.Status, next.Problem = 0, EventsGone
	}
	if d.Metrics != nil {
		d.Metrics.Attempted(next.Problem)
	}
	conclude(&e, &next, now)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeDeadline)
	defer cancel()
	err = d.Store.SaveProgress(ctx, e, &next)
	if err == nil && next.State == Dead {
		d.Log.WarnContext(ctx, "webhook delivery is dead", "endpoint", e.ID, "delivery", next.ID,
			"problem", next.Problem, "attempts", next.Attempts)
	}
	return next.State == Delivered || next.Retried, err
}

// send makes the request of an attempt. It returns the response's status, 0 without a response, and
// the problem.
func (d *Dispatcher) send(
	ctx context.Context, e Endpoint, next Delivery, items []event.Item, now time.Time,
) (int, Problem) {
	secret, err := d.Secrets.Open(e.ID, e.Secret)
	if err != nil {
		return 0, BadSecret
	}
	secrets := []string{secret}
	for _, sealed := range e.OldSecrets {
		if old, err := d.Secrets.Open(e.ID, sealed); err == nil && now.Before(e.OldSecretUntil) {
			secrets = append(secrets, old)
		}
	}
	b := body{Type: "events", Timestamp: event.FormatTime(next.CreatedAt)}
	b.Data.Items = items
	text, err := json.Marshal(b)
	if err != nil {
		return 0, EventsGone
	}
	return d.Sender.send(ctx, message{
		id: next.ID, url: e.URL, at: now, secrets: secrets, body: text,
	})
}

// conclude changes an endpoint and a delivery after an attempt at now: the delivery is delivered,
// or waits for its next attempt, or is dead. A dead delivery disables an endpoint that has failed
// for disableAfter.
func conclude(e *Endpoint, next *Delivery, now time.Time) {
	if next.Problem == NoProblem {
		next.State, next.EndedAt = Delivered, now
		e.Position, e.FailingSince = max(e.Position, next.To), time.Time{}
		return
	}
	if next.Retried { // on demand: it does not count for the deliveries in order
		next.State, next.EndedAt = Dead, now
		return
	}
	if e.FailingSince.IsZero() {
		e.FailingSince = now
	}
	failing := now.Sub(e.FailingSince)
	// The endpoint may fail for longer than this delivery exists, which has a day of its own.
	tried := min(failing, now.Sub(next.CreatedAt))
	if tried < deadAfter && next.Problem != EventsGone {
		next.NextAt = now.Add(workers.LongPause(firstPause, maxPause, int(next.Attempts)-1))
		e.DueAt = next.NextAt
		return
	}
	next.State, next.EndedAt = Dead, now
	e.Position, e.DueAt = max(e.Position, next.To), now.Add(pauseAfterDeath)
	if failing >= disableAfter { // else its backlog would keep old events for ever
		e.Enabled = false
	}
}
