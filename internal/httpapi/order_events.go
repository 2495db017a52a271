package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
)

// eventID numbers the progress of an order. It is the same on every node, and only grows until an
// operator requeues an order that has failed.
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

// lastEventID returns the last event that the client has received; 0 where the header is not ours.
// A browser sends it when it reconnects, and then gets no event twice.
func lastEventID(h http.Header) int {
	n, err := strconv.Atoi(h.Get("Last-Event-ID"))
	if err != nil || n < 0 || n > eventID(order.Paid) {
		return 0
	}
	return n
}

// orderEvents is GET /orders/{orderSn}/events, a stream of server-sent events
// (https://html.spec.whatwg.org/multipage/server-sent-events.html). It begins with the order's
// present state, so that a client needs no other call and misses nothing between two calls.
func (a *api) orderEvents(ctx context.Context, r *request) (response, error) {
	o, err := runOrderStep(ctx, r, a.Orders.Find, a.Orders.Find)
	if err != nil {
		return response{}, err
	}
	return a.stream(r, func(ctx context.Context, events eventStream) {
		s := orderStream{eventStream: events, actor: r.actor, order: o, last: lastEventID(r.header)}
		if !o.Status.Final() && s.last >= eventID(order.Failed) {
			s.last = 0 // the order had failed
		}
		if o.Status.Final() && s.last >= eventID(o.Status) {
			s.c.Status(http.StatusNoContent) // an EventSource does not reconnect after 204
			s.c.Writer.WriteHeaderNow()
			return
		}
		if s.start() && s.sendOrder(ctx) {
			s.sendChanges(ctx)
		}
	})
}

// orderStream is one client of an order's events.
type orderStream struct {
	eventStream
	actor seckill.Actor
	order order.Order
	last  int // id of the last event that the client has
}

// sendChanges sends each change until the order is final, the client leaves or the node stops. The
// subscription starts from the status that was sent, so that a change in between is delivered.
func (s *orderStream) sendChanges(ctx context.Context) {
	l := s.Notifier.Subscribe(s.order.GoodsID, s.order.OrderSn, s.order.Status)
	defer s.Notifier.Unsubscribe(l)
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		select {
		case s.order = <-l.Changed:
			if !s.sendOrder(ctx) {
				return
			}
		case <-beat.C:
			// A reservation that is lost with Redis has no row and causes no notification, so a
			// queued order is also read with every heartbeat.
			if !s.write(": still here\n\n") ||
				s.order.Status == order.Queued && !s.refresh(ctx) {
				return
			}
		case <-ctx.Done():
			return
		case <-s.Notifier.Done():
			return
		}
	}
}

// refresh reads the order again and sends it; false ends the stream. After a timeout the next
// heartbeat tries again.
func (s *orderStream) refresh(ctx context.Context) bool {
	reading, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	o, err := s.Orders.Find(reading, s.actor, s.order.OrderSn)
	if err != nil {
		return ctx.Err() == nil
	}
	s.order = o
	return s.sendOrder(ctx)
}

// sendOrder sends the order where the client does not have it yet; false ends the stream.
func (s *orderStream) sendOrder(ctx context.Context) bool {
	if id := eventID(s.order.Status); id > s.last {
		data, err := json.Marshal(s.newWholeOrderResponse(ctx, s.order))
		if err != nil || !s.write(fmt.Sprintf("event: status\nid: %d\ndata: %s\n\n", id, data)) {
			return false
		}
		s.last = id
	}
	return !s.order.Status.Final()
}
