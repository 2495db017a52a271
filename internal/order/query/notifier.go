package query

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/workers"
)

// StatusReader is MySQL as the watch needs it.
type StatusReader interface {
	// StatusOf tells the status of those of the orders that have a row.
	StatusOf(ctx context.Context, goodsID int64, sns []string) (map[string]order.Status, error)
	// OrdersByNumber reads those of the orders that have a row.
	OrdersByNumber(ctx context.Context, goodsID int64, sns []string) ([]order.Order, error)
}

// Notifier tells listeners that their orders have changed. One poller asks for all of a node's listeners together, goods by
// goods, so that thousands of them cost a statement or two a round and not one each.
type Notifier struct {
	store     StatusReader
	pending   PendingStore
	log       *slog.Logger
	done      chan struct{}
	closeOnce sync.Once
	mu        sync.Mutex
	goods     map[int64]map[*Subscription]struct{}
}

// Subscription waits for one order.
type Subscription struct {
	Changed chan order.Order // gets the order when its status is another than the one known
	goodsID int64
	orderSn string
	known   order.Status // that the listener was told last; under the watch's lock
}

const (
	pollInterval = 200 * time.Millisecond // how long a listener may wait to be told, besides the round's own time
	pollChunk    = 1000
)

// NewNotifier makes a watch; it tells nothing until it runs.
func NewNotifier(store StatusReader, promises PendingStore, log *slog.Logger) *Notifier {
	return &Notifier{store: store, pending: promises, log: log, done: make(chan struct{}), goods: make(map[int64]map[*Subscription]struct{})}
}

// Listen begins to wait for an order that had this status. Leave must follow.
func (w *Notifier) Subscribe(goodsID int64, orderSn string, known order.Status) *Subscription {
	l := &Subscription{Changed: make(chan order.Order, 1), goodsID: goodsID, orderSn: orderSn, known: known}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.goods[goodsID] == nil {
		w.goods[goodsID] = make(map[*Subscription]struct{})
	}
	w.goods[goodsID][l] = struct{}{}
	return l
}

// Leave ends the waiting.
func (w *Notifier) Unsubscribe(l *Subscription) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.goods[l.goodsID], l)
	if len(w.goods[l.goodsID]) == 0 {
		delete(w.goods, l.goodsID)
	}
}

// Ended is closed when nobody is told anything any more.
func (w *Notifier) Done() <-chan struct{} { return w.done }

// End sends all listeners home.
func (w *Notifier) Close() { w.closeOnce.Do(func() { close(w.done) }) }

// Run looks until ctx ends.
func (w *Notifier) Run(ctx context.Context) error {
	defer w.Close()
	return workers.Every(ctx, pollInterval, w.runOnce)
}

func (w *Notifier) runOnce(ctx context.Context) {
	for goodsID, sns := range w.subscribed() {
		for len(sns) > 0 {
			n := min(pollChunk, len(sns))
			found, err := w.store.StatusOf(ctx, goodsID, sns[:n])
			if err != nil {
				if ctx.Err() == nil {
					w.log.WarnContext(ctx, "can't look for changed orders, trying again", "goods_id", goodsID, "err", err)
				}
				return
			}
			if err := w.notify(ctx, goodsID, found); err != nil && ctx.Err() == nil {
				w.log.WarnContext(ctx, "can't read changed orders, trying again", "goods_id", goodsID, "err", err)
			}
			sns = sns[n:]
		}
	}
}

// wanted are the order numbers that are listened to, each once.
func (w *Notifier) subscribed() map[int64][]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make(map[int64][]string, len(w.goods))
	for goodsID, listeners := range w.goods {
		seen := make(map[string]bool, len(listeners))
		for l := range listeners {
			if !seen[l.orderSn] {
				seen[l.orderSn], all[goodsID] = true, append(all[goodsID], l.orderSn)
			}
		}
	}
	return all
}

// tell reads the orders that have changed, all together, and hands them out.
func (w *Notifier) notify(ctx context.Context, goodsID int64, found map[string]order.Status) error {
	changed := w.changed(goodsID, found)
	if len(changed) == 0 {
		return nil
	}
	orders, err := w.store.OrdersByNumber(ctx, goodsID, changed)
	if err != nil {
		return err
	}
	byNumber := make(map[string]order.Order, len(orders))
	for _, o := range withUncertain(ctx, w.pending, orders) {
		byNumber[o.OrderSn] = o
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for l := range w.goods[goodsID] {
		o, ok := byNumber[l.orderSn]
		if !ok || o.Status == l.known {
			continue
		}
		select {
		case l.Changed <- o:
			l.known = o.Status
		default: // it has not taken the last one yet: told in a later round
		}
	}
	return nil
}

// changeError are the numbers of which some listener knows another status.
func (w *Notifier) changed(goodsID int64, found map[string]order.Status) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := make(map[string]bool)
	var sns []string
	for l := range w.goods[goodsID] {
		if status, written := found[l.orderSn]; written && status != l.known && !seen[l.orderSn] {
			seen[l.orderSn], sns = true, append(sns, l.orderSn)
		}
	}
	return sns
}
