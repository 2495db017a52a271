package query

import (
	"context"
	"log/slog"
	"slices"
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
	redis     Redis
	log       *slog.Logger
	done      chan struct{}
	closeOnce sync.Once
	mu        sync.Mutex
	goods     map[int64]map[string][]*Subscription // by goods id and order number
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
	// Every round reads the queued orders, for which buyers wait. One of roundsOfCreated reads the
	// others too: most subscriptions are of created orders, which change minutes later, if at all.
	roundsOfCreated = 3
)

// NewNotifier returns a notifier that sends nothing before Run.
func NewNotifier(store Store, redis Redis, log *slog.Logger) *Notifier {
	return &Notifier{
		store: store, redis: redis, log: log,
		done: make(chan struct{}), goods: make(map[int64]map[string][]*Subscription),
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
		n.goods[goodsID] = make(map[string][]*Subscription)
	}
	n.goods[goodsID][orderSn] = append(n.goods[goodsID][orderSn], sub)
	return sub
}

// Unsubscribe ends a subscription.
func (n *Notifier) Unsubscribe(sub *Subscription) {
	n.mu.Lock()
	defer n.mu.Unlock()
	orders := n.goods[sub.goodsID]
	if orders == nil {
		return
	}
	orders[sub.orderSn] = slices.DeleteFunc(orders[sub.orderSn],
		func(s *Subscription) bool { return s == sub })
	if len(orders[sub.orderSn]) == 0 {
		delete(orders, sub.orderSn)
	}
	if len(orders) == 0 {
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
	round := 0
	return workers.Every(ctx, pollInterval, func(ctx context.Context) {
		n.runOnce(ctx, round%roundsOfCreated == 0)
		round++
	})
}

func (n *Notifier) runOnce(ctx context.Context, all bool) {
	for goodsID, sns := range n.subscribed(all) {
		for chunk := range slices.Chunk(sns, pollChunk) {
			if err := n.notify(ctx, goodsID, chunk); err != nil {
				workers.Warn(ctx, n.log, "cannot read the status of orders, retrying", err,
					"goods_id", goodsID)
				break
			}
		}
	}
}

// subscribed returns the order numbers of subscriptions that wait for a queued order, or of all,
// each once.
func (n *Notifier) subscribed(all bool) map[int64][]string {
	n.mu.Lock()
	defer n.mu.Unlock()
	numbers := make(map[int64][]string, len(n.goods))
	for goodsID, orders := range n.goods {
		for sn, subs := range orders {
			if all || slices.ContainsFunc(subs, (*Subscription).queued) {
				numbers[goodsID] = append(numbers[goodsID], sn)
			}
		}
	}
	return numbers
}

func (s *Subscription) queued() bool { return s.known == order.Queued }

// notify reads which of the orders have changed, reads those with one statement and sends them.
func (n *Notifier) notify(ctx context.Context, goodsID int64, sns []string) error {
	found, err := n.store.StatusOf(ctx, goodsID, sns)
	if err != nil {
		return err
	}
	changed := n.changed(goodsID, found)
	if len(changed) == 0 {
		return nil
	}
	orders, err := n.store.OrdersByNumber(ctx, goodsID, changed)
	if err != nil {
		return err
	}
	orders = withUncertain(ctx, n.store, n.redis, orders)
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, o := range orders {
		for _, sub := range n.goods[goodsID][o.OrderSn] {
			if o.Status == sub.known {
				continue
			}
			select {
			case sub.Changed <- o:
				sub.known = o.Status
			default: // the subscriber has not received the last change; a later round sends this
			}
		}
	}
	return nil
}

// changed returns the numbers whose status differs from the last one sent to a subscription.
func (n *Notifier) changed(goodsID int64, found map[string]order.Status) (sns []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for sn, status := range found {
		if slices.ContainsFunc(n.goods[goodsID][sn],
			func(s *Subscription) bool { return s.known != status }) {
			sns = append(sns, sn)
		}
	}
	return sns
}
