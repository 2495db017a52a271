package httpapi

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/go-json-experiment/json"

	"flashsale.dev/seckill/internal/seckill"
)

// snapshotInterval is how often a console is told how its sale goes; a picture serves everybody who looks meanwhile.
const (
	snapshotInterval = time.Second
	snapshotTTL      = 900 * time.Millisecond
	snapshotTimeout  = 3 * time.Second // that a look may take
)

func (a *api) saleEventRoutes() []route {
	return []route{{methods: []string{http.MethodGet}, path: "/admin/sales/:goodsId/events", handle: a.saleEvents}}
}

// snapshotResponse is how a sale goes at a moment.
type snapshotResponse struct {
	Figures           any     `json:"figures"`
	Ledger            any     `json:"ledger"` // null while the sale is being rebuilt
	PurchaseP99Millis float64 `json:"purchaseP99Millis"`
}

// gallery keeps each sale's last picture, so that many consoles cost one look a second and not one each.
type gallery struct {
	mu       sync.Mutex
	pictures map[int64]*picture
}

// picture is one look, under way or done.
type picture struct {
	began time.Time
	done  chan struct{}
	event string
}

// saleEvents is GET /admin/sales/{goodsId}/events: a picture each second, until the console is closed.
func (a *api) saleEvents(ctx context.Context, r *request) (response, error) {
	if _, err := a.saleStatistics(ctx, r); err != nil { // whose sale it is, and whether there is one
		return response{}, err
	}
	if err := a.streams.acquire(r.actor.ID); err != nil {
		return response{}, err
	}
	return response{stream: func(c *gin.Context) {
		defer a.streams.release(r.actor.ID)
		s := eventStream{api: a, c: c, actor: r.actor}
		h := c.Writer.Header()
		h.Set("Content-Type", "text/event-stream; charset=utf-8")
		h.Set("X-Accel-Buffering", "no")
		if s.write("retry: 1000\n\n") {
			s.sendSnapshots(c.Request.Context(), r)
		}
	}}, nil
}

// show sends a picture each second.
func (s *eventStream) sendSnapshots(ctx context.Context, r *request) {
	round, life := time.NewTicker(snapshotInterval), time.NewTimer(streamLife)
	defer round.Stop()
	defer life.Stop()
	var ended <-chan struct{}
	if s.Notifier != nil {
		ended = s.Notifier.Done()
	}
	for {
		if !s.write(s.picture(ctx, r)) {
			return
		}
		select {
		case <-round.C:
		case <-ctx.Done():
			return
		case <-life.C:
			return
		case <-ended:
			return
		}
	}
}

// picture is the sale's last picture as an event, or a new one where that is too old. The caller may see the sale.
func (a *api) picture(ctx context.Context, r *request) string {
	id := r.ID("goodsId")
	a.gallery.mu.Lock()
	p := a.gallery.pictures[id]
	if p == nil || a.now().Sub(p.began) >= snapshotTTL {
		p = &picture{began: a.now(), done: make(chan struct{})}
		a.gallery.hang(id, p)
		go a.look(context.WithoutCancel(ctx), r, p) // others wait for it, whether this caller does or not
	}
	a.gallery.mu.Unlock()
	select {
	case <-p.done:
		return p.event
	case <-ctx.Done():
		return ": gone\n\n"
	}
}

// hang puts a picture up and takes those down that nobody has looked at lately.
func (g *gallery) hang(id int64, p *picture) {
	for other, old := range g.pictures {
		if p.began.Sub(old.began) > time.Minute {
			delete(g.pictures, other)
		}
	}
	if g.pictures == nil {
		g.pictures = make(map[int64]*picture)
	}
	g.pictures[id] = p
}

// look makes a picture, or tells why there is none.
func (a *api) look(ctx context.Context, r *request, p *picture) {
	ctx, cancel := context.WithTimeout(ctx, snapshotTimeout)
	defer cancel()
	defer close(p.done)
	p.event = troubleEvent(seckill.Unavailable)
	figures, err := a.saleStatistics(ctx, r)
	if err != nil {
		if reason := seckill.ReasonOf(err); reason != "" {
			p.event = troubleEvent(reason)
		}
		return
	}
	shown := snapshotResponse{Figures: figures.data, PurchaseP99Millis: float64(a.pulse.p99(a.now()).Microseconds()) / 1000}
	if ledger, err := a.saleLedger(ctx, r); err == nil {
		shown.Ledger = ledger.data
	}
	if data, err := json.Marshal(shown); err == nil {
		p.event = "event: picture\ndata: " + string(data) + "\n\n"
	}
}

func troubleEvent(reason seckill.Reason) string {
	return "event: trouble\ndata: {\"reason\":\"" + string(reason) + "\"}\n\n"
}
