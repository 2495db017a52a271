package query

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/workers"
)

// Notifier sends changed orders to subscriptions. One poller serves all subscriptions of a node, so
// that thousands of them cost one or two statements per sale and round. It is safe for concurrent
// use.
type Notifier struct {
	store     Store
	pending   Redis
	log       *slog.Logger
	done      chan struct{}
	closeOnce sync.Once
	mu        sync.Mutex
	goods     map[int64]map[*Subscription]struct{}
}

// Subscription receives the changes of one order.
type Subscription struct {
	Changed chan order.Order // receives the order when its status has changed
	goodsID int64
	orderSn string
	known   order.Status // status last sent; guarded by Notifier.mu
}

const (
	pollInterval = 200 * time.Millisecond // delay of a notification besides the poll itself
	pollChunk    = 1000
)

// NewNotifier returns a notifier that sends nothing before Run.
func NewNotifier(store Store, pending Redis, log *slog.Logger) *Notifier {
	return &Notifier{
		store: store, pending: pending, log: log,
		done: make(chan struct{}), goods: make(map[int64]map[*Subscription]struct{}),
	}
}

// Subscribe returns a subscription to an order whose known status the subscriber has. The caller
// must call Unsubscribe.
func (n *Notifier) Subscribe(goodsID int64, orderSn string, known order.Status) *Subscription {
	sub := &Subscription{
		Changed: make(chan order.Order, 1), goodsID: goodsID, orderSn: orderSn, known: known,
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.goods[goodsID] == nil {
		n.goods[goodsID] = make(map[*Subscription]struct{})
	}
	n.goods[goodsID][sub] = struct{}{}
	return sub
}

// Unsubscribe ends a subscription.
func (n *Notifier) Unsubscribe(sub *Subscription) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.goods[sub.goodsID], sub)
	if len(n.goods[sub.goodsID]) == 0 {
		delete(n.goods, sub.goodsID)
	}
}

// Done is closed when the notifier sends no more changes.
func (n *Notifier) Done() <-chan struct{} { return n.done }

// Close ends all subscriptions: it closes Done.
func (n *Notifier) Close() { n.closeOnce.Do(func() { close(n.done) }) }

// Run polls until ctx ends.
func (n *Notifier) Run(ctx context.Context) error {
	defer n.Close()
	return workers.Every(ctx, pollInterval, n.runOnce)
}

func (n *Notifier) runOnce(ctx context.Context) {
	for goodsID, sns := range n.subscribed() {
		for len(sns) > 0 {
			chunk := min(pollChunk, len(sns))
			found, err := n.store.StatusOf(ctx, goodsID, sns[:chunk])
			if err != nil {
				if ctx.Err() == nil {
					n.log.WarnContext(ctx, "can't read the status of orders, will retry",
						"goods_id", goodsID, "err", err)
				}
				return
			}
			if err := n.notify(ctx, goodsID, found); err != nil && ctx.Err() == nil {
				n.log.WarnContext(ctx, "can't read changed orders, will retry", "goods_id", goodsID,
					"err", err)
			}
			sns = sns[chunk:]
		}
	}
}

// subscribed returns the order numbers of all subscriptions, each once.
func (n *Notifier) subscribed() map[int64][]string {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := make(map[int64][]string, len(n.goods))
	for goodsID, subs := range n.goods {
		seen := make(map[string]bool, len(subs))
		for sub := range subs {
			if !seen[sub.orderSn] {
				seen[sub.orderSn], all[goodsID] = true, append(all[goodsID], sub.orderSn)
			}
		}
	}
	return all
}

// notify reads the orders that have changed with one statement and sends them.
func (n *Notifier) notify(ctx context.Context, goodsID int64, found map[string]order.Status) error {
	changed := n.changed(goodsID, found)
	if len(changed) == 0 {
		return nil
	}
	orders, err := n.store.OrdersByNumber(ctx, goodsID, changed)
	if err != nil {
		return err
	}
	byNumber := make(map[string]order.Order, len(orders))
	for _, o := range withUncertain(ctx, n.pending, orders) {
		byNumber[o.OrderSn] = o
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for sub := range n.goods[goodsID] {
		o, ok := byNumber[sub.orderSn]
		if !ok || o.Status == sub.known {
			continue
		}
		select {
		case sub.Changed <- o:
			sub.known = o.Status
		default: // the subscriber has not received the last change; a later round sends this one
		}
	}
	return nil
}

// changed returns the numbers whose status differs from the last one sent.
func (n *Notifier) changed(goodsID int64, found map[string]order.Status) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	seen := make(map[string]bool)
	var sns []string
	for sub := range n.goods[goodsID] {
		status, written := found[sub.orderSn]
		if written && status != sub.known && !seen[sub.orderSn] {
			seen[sub.orderSn], sns = true, append(sns, sub.orderSn)
		}
	}
	return sns
}
