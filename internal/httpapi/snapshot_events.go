package httpapi

import (
	"context"
	"time"

	"github.com/go-json-experiment/json"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/seckill"
)

// The console gets a snapshot of its sale each second. All consoles of a sale share one snapshot.
const (
	snapshotInterval = time.Second
	snapshotTTL      = 900 * time.Millisecond // less than the interval, so that each one is new
	snapshotTimeout  = 3 * time.Second
	maxSnapshots     = 1000
)

// snapshotResponse is all that the console shows of a sale, so that one event updates
// every part of it.
type snapshotResponse struct {
	Figures           any     `json:"figures"`
	Ledger            any     `json:"ledger"` // null while the sale is being rebuilt
	PurchaseP99Millis float64 `json:"purchaseP99Millis"`
}

// saleEvents is GET /admin/sales/{goodsId}/events: a stream of snapshots until the client leaves.
func (a *api) saleEvents(ctx context.Context, r *request) (response, error) {
	// The statistics check that the sale exists and that the caller manages it.
	if _, err := a.recentStatistics(ctx, r); err != nil {
		return response{}, err
	}
	return a.stream(r, func(ctx context.Context, s eventStream) {
		if s.start() {
			s.sendSnapshots(ctx, r)
		}
	})
}

// sendSnapshots sends one snapshot at once and one each second. The first console that needs a
// snapshot has the cache build it; the others share it. A slow store delays the consoles and gets
// no second call.
func (s eventStream) sendSnapshots(ctx context.Context, r *request) {
	interval := time.NewTicker(snapshotInterval)
	defer interval.Stop()
	for s.keyIsValid(ctx, r.actor) {
		event, err := s.snapshots.Get(ctx, r.ID("goodsId"),
			func(ctx context.Context) (string, error) { return s.snapshotEvent(ctx, r), nil })
		if err != nil || !s.write(event) { // an error means that the client has left
			return
		}
		select {
		case <-interval.C:
		case <-ctx.Done():
			return
		case <-s.Notifier.Done():
			return
		}
	}
}

// keyIsValid reports whether the caller uses no API key, or one that is still valid. A stream ends
// with its key; the client that connects again gets the reason.
func (a *api) keyIsValid(ctx context.Context, by seckill.Actor) bool {
	return by.APIKey.ID == "" || a.KeyVerifier.Check(ctx, by.APIKey.ID) == nil
}

// snapshotEvent returns a snapshot as an event, or an event with the reason for its absence. The
// cache keeps failures too, so that consoles add no load to a store that is down.
func (a *api) snapshotEvent(ctx context.Context, r *request) string {
	statistics, err := a.recentStatistics(ctx, r)
	if reason := apierror.ReasonOf(err); reason != "" {
		return troubleEvent(reason)
	} else if err != nil {
		return troubleEvent(apierror.Unavailable)
	}
	p99 := float64(a.purchaseLatency.p99(time.Now()).Microseconds()) / 1000
	snapshot := snapshotResponse{Figures: statistics.data, PurchaseP99Millis: p99}
	if ledger, err := a.Sales.RecentLedger(ctx, r.actor, r.ID("goodsId")); err == nil {
		snapshot.Ledger = ledger
	}
	data, err := json.Marshal(snapshot)
	if err != nil {
		return troubleEvent(apierror.Unavailable)
	}
	return "event: picture\ndata: " + string(data) + "\n\n" // the contract's name of the event
}

// troubleEvent reports to the console that its figures are old. The stream stays open, so that the
// next snapshot replaces it without a reload.
func troubleEvent(reason apierror.Reason) string {
	return "event: trouble\ndata: {\"reason\":\"" + string(reason) + "\"}\n\n"
}
