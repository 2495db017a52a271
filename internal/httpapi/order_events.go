package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/go-json-experiment/json"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/query"
	"flashsale.dev/seckill/internal/seckill"
)

// Notifier tells when orders change; *query.Notifier is one.
type Notifier interface {
	// Listen begins to wait for an order whose status is known; Leave must follow.
	Subscribe(goodsID int64, orderSn string, known order.Status) *query.Subscription
	Unsubscribe(l *query.Subscription)
	// Ended is closed when nobody is told anything any more.
	Done() <-chan struct{}
}

var _ Notifier = (*query.Notifier)(nil)

// Bounds of event streams.
const (
	maxStreamsOfUser = 5
	maxStreamsOfNode = 10_000
	streamLife       = 30 * time.Minute // then the client comes again, with Last-Event-ID and a token that is still good
	heartbeat        = 15 * time.Second
	streamWrite      = 10 * time.Second // a client that takes nothing for so long is cut off
	refreshTimeout   = 2 * time.Second
)

// streams counts the event streams that are open.
type streams struct {
	mu     sync.Mutex
	all    int
	byUser map[int64]int
}

// enter lets a stream in, or says why not; leave must follow where it does.
func (s *streams) acquire(user int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all >= maxStreamsOfNode {
		return seckill.NewUnavailable("too many event streams are open on this node", nil)
	}
	if s.byUser[user] >= maxStreamsOfUser {
		e := seckill.NewError(seckill.RateLimited, "you have %d event streams open; close one first", maxStreamsOfUser)
		e.RetryAfter = time.Second
		return e
	}
	if s.byUser == nil {
		s.byUser = make(map[int64]int)
	}
	s.all, s.byUser[user] = s.all+1, s.byUser[user]+1
	return nil
}

func (s *streams) release(user int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all--
	if s.byUser[user]--; s.byUser[user] <= 0 {
		delete(s.byUser, user)
	}
}

// eventID is how far an order of a status has come: it only grows, and every node says the same.
func eventID(s order.Status) int {
	switch s {
	case order.Queued:
		return 1
	case order.Created:
		return 2
	default:
		return 3
	}
}

// lastEventID is what the client has heard already; what is no id of ours is nothing.
func lastEventID(h http.Header) int {
	n, err := strconv.Atoi(h.Get("Last-Event-ID"))
	if err != nil || n < 0 || n > eventID(order.Paid) {
		return 0
	}
	return n
}

func (a *api) eventRoutes() []route {
	if a.Notifier == nil {
		return nil
	}
	return []route{{methods: []string{http.MethodGet}, path: "/orders/:orderSn/events", handle: a.orderEvents}}
}

// orderEvents is GET /orders/{orderSn}/events (https://html.spec.whatwg.org/multipage/server-sent-events.html).
func (a *api) orderEvents(ctx context.Context, r *request) (response, error) {
	var o order.Order
	_, err := a.withOrder(ctx, r, func(ctx context.Context, by seckill.Actor, sn string) (_ order.Order, err error) {
		o, err = a.Orders.Find(ctx, by, sn)
		return o, err
	})
	if err != nil {
		return response{}, err
	}
	if err := a.streams.acquire(r.actor.ID); err != nil {
		return response{}, err
	}
	return response{stream: func(c *gin.Context) {
		defer a.streams.release(r.actor.ID)
		s := eventStream{api: a, c: c, actor: r.actor, order: o, last: lastEventID(r.header)}
		s.run(c.Request.Context())
	}}, nil
}

// eventStream is one client that waits for its order.
type eventStream struct {
	*api
	c     *gin.Context
	actor seckill.Actor
	order order.Order
	last  int // the id of the last event that the client has
}

func (s *eventStream) run(ctx context.Context) {
	if s.order.Status.Final() && s.last >= eventID(s.order.Status) {
		s.c.Status(http.StatusNoContent) // to an EventSource: do not come again
		s.c.Writer.WriteHeaderNow()
		return
	}
	h := s.c.Writer.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("X-Accel-Buffering", "no") // nginx must not collect what is to be told now
	if s.write("retry: 1000\n\n") && s.send() {
		s.wait(ctx)
	}
}

// wait tells what becomes of the order until it is final, the client is gone or the node stops.
func (s *eventStream) wait(ctx context.Context) {
	l := s.Notifier.Subscribe(s.order.GoodsID, s.order.OrderSn, s.order.Status)
	defer s.Notifier.Unsubscribe(l)
	beat, life := time.NewTicker(heartbeat), time.NewTimer(streamLife)
	defer beat.Stop()
	defer life.Stop()
	for {
		select {
		case s.order = <-l.Changed:
			if !s.send() {
				return
			}
		case <-beat.C: // what is lost with Redis has no row, and nobody is told of it but who looks
			if !s.write(": still here\n\n") || s.order.Status == order.Queued && !s.refresh(ctx) {
				return
			}
		case <-ctx.Done():
			return
		case <-life.C:
			return
		case <-s.Notifier.Done():
			return
		}
	}
}

// look reads the order anew and tells it; false ends the stream. What can't be read now is looked for again.
func (s *eventStream) refresh(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	o, err := s.Orders.Find(ctx, s.actor, s.order.OrderSn)
	if err != nil {
		return ctx.Err() == nil
	}
	s.order = o
	return s.send()
}

// tell sends the order where the client does not have it; false ends the stream.
func (s *eventStream) send() bool {
	if id := eventID(s.order.Status); id > s.last {
		data, err := json.Marshal(s.newOrderResponse(s.order))
		if err != nil || !s.write(fmt.Sprintf("event: status\nid: %d\ndata: %s\n\n", id, data)) {
			return false
		}
		s.last = id
	}
	return !s.order.Status.Final()
}

// write sends text at once; false where the client does not take it.
func (s *eventStream) write(text string) bool {
	rc := http.NewResponseController(s.c.Writer)
	_ = rc.SetWriteDeadline(time.Now().Add(streamWrite)) // a recorder in a test has no deadlines
	if _, err := s.c.Writer.WriteString(text); err != nil {
		return false
	}
	return rc.Flush() == nil
}
