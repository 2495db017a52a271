package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/go-json-experiment/json"

	"flashsale.dev/seckill/internal/seckill"
)

// The console gets a snapshot of its sale each second. All consoles of a sale share one snapshot.
const (
	snapshotInterval = time.Second
	snapshotTTL      = 900 * time.Millisecond // less than the interval, so that each one is new
	snapshotTimeout  = 3 * time.Second
	maxSnapshots     = 1000
)

func (a *api) saleEventRoutes() []route {
	return []route{{
		methods: []string{http.MethodGet}, path: "/admin/sales/:goodsId/events", handle: a.saleEvents,
	}}
}

type snapshotResponse struct {
	Figures           any     `json:"figures"`
	Ledger            any     `json:"ledger"` // null while the sale is being rebuilt
	PurchaseP99Millis float64 `json:"purchaseP99Millis"`
}

// saleEvents is GET /admin/sales/{goodsId}/events: a stream of snapshots until the client leaves.
func (a *api) saleEvents(ctx context.Context, r *request) (response, error) {
	// The statistics check that the sale exists and that the caller manages it.
	if _, err := a.saleStatistics(ctx, r); err != nil {
		return response{}, err
	}
	if err := a.streams.acquire(r.actor.ID); err != nil {
		return response{}, err
	}
	return response{stream: func(c *gin.Context) {
		defer a.streams.release(r.actor.ID)
		s := eventStream{api: a, c: c, actor: r.actor}
		if s.start() {
			s.sendSnapshots(c.Request.Context(), r)
		}
	}}, nil
}

func (s *eventStream) sendSnapshots(ctx context.Context, r *request) {
	interval, lifetime := time.NewTicker(snapshotInterval), time.NewTimer(streamLifetime)
	defer interval.Stop()
	defer lifetime.Stop()
	var ended <-chan struct{}
	if s.Notifier != nil {
		ended = s.Notifier.Done()
	}
	for {
		event, err := s.snapshots.Get(ctx, r.ID("goodsId"), func(ctx context.Context) (string, error) {
			return s.snapshotEvent(ctx, r), nil
		})
		if err != nil || !s.write(event) { // an error means that the client has left
			return
		}
		select {
		case <-interval.C:
		case <-ctx.Done():
			return
		case <-lifetime.C:
			return
		case <-ended:
			return
		}
	}
}

// snapshotEvent returns a snapshot as an event, or an event with the reason why there is none.
// Failures are cached too: consoles must not add load to a store that is down.
func (a *api) snapshotEvent(ctx context.Context, r *request) string {
	statistics, err := a.saleStatistics(ctx, r)
	if reason := seckill.ReasonOf(err); reason != "" {
		return troubleEvent(reason)
	} else if err != nil {
		return troubleEvent(seckill.Unavailable)
	}
	p99 := float64(a.purchaseLatency.p99(a.now()).Microseconds()) / 1000
	snapshot := snapshotResponse{Figures: statistics.data, PurchaseP99Millis: p99}
	if ledger, err := a.saleLedger(ctx, r); err == nil {
		snapshot.Ledger = ledger.data
	}
	data, err := json.Marshal(snapshot)
	if err != nil {
		return troubleEvent(seckill.Unavailable)
	}
	return "event: picture\ndata: " + string(data) + "\n\n" // the contract names the event "picture"
}

func troubleEvent(reason seckill.Reason) string {
	return "event: trouble\ndata: {\"reason\":\"" + string(reason) + "\"}\n\n"
}
