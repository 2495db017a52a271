package reconcile

import (
	"context"
	"maps"
	"time"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/workers"
)

// holdingsInterval is how often the holdings of a sale are compared, apart from once for each
// epoch. MySQL reads all orders of the sale for it, and only a load or a defect can lose one.
const holdingsInterval = time.Hour

// comparison is a completed comparison of a sale's holdings; zero if there was none.
type comparison struct {
	epoch int64
	at    time.Time
}

// compareHoldings compares the holdings of the sales that are due, one after the other, until ctx
// ends. It has a goroutine of its own, because the orders of one sale may take a minute.
func (r *Reconciler) compareHoldings(ctx context.Context) error {
	compared := make(map[int64]comparison)
	return workers.Every(ctx, reconcileInterval, func(ctx context.Context) {
		// An old comparison counts as none, so the map does not keep sales that are over.
		maps.DeleteFunc(compared, func(_ int64, c comparison) bool {
			return time.Since(c.at) >= holdingsInterval
		})
		for _, sale := range r.Live.Sales() {
			if last, ok := compared[sale.GoodsID]; !ok || last.epoch < sale.Epoch {
				compared[sale.GoodsID] = r.compareOne(ctx, sale, last)
			}
		}
	})
}

// compareOne compares the holdings of one sale. It returns last if they must be compared again.
func (r *Reconciler) compareOne(
	ctx context.Context, sale seckill.Sale, last comparison,
) comparison {
	v, err := r.Redis.View(ctx, sale.GoodsID)
	if err != nil || v.Gate != seckill.GateOpen {
		return last
	}
	if err := r.CompareHoldings(ctx, v); err != nil {
		workers.Warn(ctx, r.Log, "cannot compare the holdings of a sale, retrying", err,
			"goods_id", sale.GoodsID)
		return last
	}
	return comparison{epoch: v.Epoch, at: time.Now()}
}

// CompareHoldings searches the buyers' holdings in Redis for every active order of MySQL, page by
// page. If one is missing it shuts the gate, so that the rebuilder loads all of them. Otherwise the
// buyer could exceed the limit, and MySQL would refuse what Redis has promised.
//
// It compares while the sale goes on. Redis has an order before MySQL writes it, and releases it
// after MySQL ended it. An order that is still active after Redis lacked it is therefore lost.
func (r *Reconciler) CompareHoldings(ctx context.Context, v seckill.View) error {
	pages := r.Store.HoldingPages(ctx, v.GoodsID, v.Epoch, v.Now)
	for page, err := range pages {
		if err != nil {
			return err
		}
		lost, err := r.lostOf(ctx, v.GoodsID, page)
		if err != nil {
			return err
		}
		if len(lost) > 0 {
			return r.reload(ctx, v, lost)
		}
	}
	return nil
}

// lostOf returns the numbers of the active orders among a page that their buyers' holdings lack.
func (r *Reconciler) lostOf(
	ctx context.Context, goodsID int64, page []order.Held,
) (lost []string, err error) {
	absent, err := r.Redis.NotHeld(ctx, goodsID, page)
	if err != nil || len(absent) == 0 {
		return nil, err
	}
	rows, err := r.Store.StatusOf(ctx, goodsID, absent)
	for _, sn := range absent {
		if rows[sn].Active() {
			lost = append(lost, sn)
		}
	}
	return lost, err
}

// reload shuts the gate of a sale that lacks holdings, unless Redis has another epoch by now.
func (r *Reconciler) reload(ctx context.Context, before seckill.View, lost []string) error {
	v, err := r.Redis.View(ctx, before.GoodsID)
	if err != nil || v.Epoch != before.Epoch {
		return err
	}
	r.Log.ErrorContext(ctx, "buyers' holdings lack orders, the sale is rebuilt",
		"difference", "holdings", "goods_id", v.GoodsID, "orders", len(lost), "order_sn", lost[0])
	if r.Metrics != nil {
		r.Metrics.Reconciled(Report{Holdings: len(lost), Repaired: len(lost)})
	}
	_, err = r.Redis.Shut(ctx, v.GoodsID, v.Epoch)
	return err
}
