package sqlstore

import (
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"gorm.io/gorm"

	"flashsale.dev/seckill/internal/event"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/orderwriter"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// batchPlan is everything that a batch will write. It is complete before the first write.
type batchPlan struct {
	sale        saleRow // as read under the lock, or as the last batch left it
	now         time.Time
	payBy       int64            // of created orders
	sold        int64            // units of created orders
	holdings    map[string]int64 // units per buyer afterwards
	orders      []orderRow
	deadLetters []deadLetterRow
	tombstones  []orderRow // to fill
	out         order.Outcome
}

// newPlan returns a plan that writes nothing yet, with room for as many orders as lines.
func newPlan(sale saleRow, now time.Time, lines int) *batchPlan {
	return &batchPlan{
		sale: sale, now: changeTime(sale, now),
		holdings: make(map[string]int64, lines), orders: make([]orderRow, 0, lines),
		out: order.Outcome{Failed: make(map[string]order.FailureReason)},
	}
}

// addEvents writes the events of the plan's orders. A filled tombstone was failed before.
func (p *batchPlan) addEvents(tx *gorm.DB) error {
	sns := make(map[order.Status][]string, 2)
	for i := range p.orders {
		r := &p.orders[i]
		sns[r.Status] = append(sns[r.Status], r.OrderSn)
	}
	add := addOrderEvents
	if p.sold == 0 { // changeStock did not store the time
		add = addEventsAlone
	}
	for status, changed := range sns {
		err := add(tx, p.sale, event.OfStatus(status), changed, p.now)
		if err != nil {
			return err
		}
	}
	return nil
}

// judge decides on each line in order: created where the buyer's limit and the stock allow it,
// failed otherwise. held maps each buyer to the units held before.
func judge(
	sale saleRow, held map[string]int64, b orderwriter.Batch, lines []reservation.OrderLine,
) (*batchPlan, error) {
	p := newPlan(sale, b.Now, len(lines))
	p.payBy = b.PayBy.UnixMilli()
	for _, l := range lines {
		if err := validate(l); err != nil {
			return nil, err
		}
		// The batch's later lines of a buyer count on top of the earlier ones.
		after, counted := p.holdings[l.BuyerID]
		if !counted {
			after = held[l.BuyerID]
		}
		after += l.Quantity
		switch {
		case after > sale.MaxPerBuyerLimit:
			p.addFailed(l, deadLetterOf(b, l, order.FailedOverLimit))
		case l.Quantity > sale.Stock-p.sold:
			p.addFailed(l, deadLetterOf(b, l, order.FailedOversold))
		default:
			p.holdings[l.BuyerID] = after
			p.create(l)
		}
	}
	return p, nil
}

// create adds an order that takes its units.
func (p *batchPlan) create(l reservation.OrderLine) {
	row := newOrder(p.sale, l, p.now)
	row.Status, row.PayBy = order.Created, &p.payBy
	p.orders, p.sold = append(p.orders, row), p.sold+l.Quantity
	p.out.Created = append(p.out.Created, l.OrderSn)
}

// addFailed adds a failed order with its dead letter and the move that returns its units to Redis.
// MySQL's stock never lost them.
func (p *batchPlan) addFailed(l reservation.OrderLine, deadLetter order.DeadLetter) {
	p.addDeadLetter(l, deadLetter)
	row := newOrder(p.sale, l, p.now)
	row.Status, row.FailureReason, row.ClosedAt = order.Failed, deadLetter.Reason, millis(p.now)
	p.orders = append(p.orders, row)
	p.out.Failed[l.OrderSn] = deadLetter.Reason
}

// addDeadLetter adds a dead letter and the move that returns its order's units to Redis.
func (p *batchPlan) addDeadLetter(l reservation.OrderLine, deadLetter order.DeadLetter) {
	p.deadLetters = append(p.deadLetters, rowOfDeadLetter(deadLetter))
	p.out.Moves = append(p.out.Moves, newMove(p.sale, l, order.MoveFail, p.now))
}

// addTombstones adds the tombstones of lines that arrive late, to fill them. The orders stay
// failed. Their units, which an adoption may have taken in Redis, are returned; the dead letter
// keeps the message.
func (p *batchPlan) addTombstones(lines []reservation.OrderLine, b orderwriter.Batch) error {
	for _, l := range lines {
		if err := validate(l); err != nil {
			return err
		}
		p.addTombstone(l, deadLetterOf(b, l, order.FailedLost))
	}
	return nil
}

// addTombstone adds one tombstone to fill. It keeps the tombstone's reason, which the buyer may
// have read already.
func (p *batchPlan) addTombstone(l reservation.OrderLine, deadLetter order.DeadLetter) {
	deadLetter.Reason = order.FailedLost
	p.tombstones = append(p.tombstones, newOrder(p.sale, l, p.now))
	p.addDeadLetter(l, deadLetter)
}

// newOrder returns the row of a line without a status. The amount is in the currency's smallest
// unit.
func newOrder(sale saleRow, l reservation.OrderLine, now time.Time) orderRow {
	return orderRow{Created: now.UnixMilli(), Order: order.Order{
		GoodsID: sale.GoodsID, OrderLine: l, Amount: sale.Price * l.Quantity,
	}}
}

// newMove returns a stock move of the sale's present epoch.
func newMove(
	sale saleRow, l reservation.OrderLine, kind order.MoveKind, now time.Time,
) order.StockMove {
	return order.StockMove{
		ID: newID(), GoodsID: sale.GoodsID, Epoch: sale.Epoch, BuyerID: l.BuyerID,
		OrderSn: l.OrderSn, Quantity: l.Quantity, Kind: kind,
		MadeAt: now.UTC().Truncate(time.Millisecond),
	}
}

// toAdopt returns the lines whose epoch is older than the goods' and that the batch does not list
// as adopted by it.
func toAdopt(
	b orderwriter.Batch, epoch int64, lines []reservation.OrderLine,
) []reservation.OrderLine {
	return filter(lines, func(l reservation.OrderLine) bool {
		adopted := b.Epoch == epoch && b.Adopted[l.OrderSn] == l.Quantity
		return l.Epoch < epoch && !adopted
	})
}

// distinct drops repeated order numbers and keeps the first line of each.
func distinct(lines []reservation.OrderLine) []reservation.OrderLine {
	seen := make(map[string]bool, len(lines))
	return filter(lines, func(l reservation.OrderLine) bool {
		repeated := seen[l.OrderSn]
		seen[l.OrderSn] = true
		return !repeated
	})
}

// buyers returns the lines' buyers without duplicates.
func buyers(lines []reservation.OrderLine) []string {
	ids := mapSlice(lines, func(l reservation.OrderLine) string { return l.BuyerID })
	slices.Sort(ids)
	return slices.Compact(ids)
}

// Lengths of the columns, in characters.
const (
	maxOrderSn = 64
	maxName    = 255
	maxPhone   = 1600
	maxOrigin  = 255
)

// validate returns an error that wraps errDoesNotFit for a line that the tables cannot hold. It
// checks before every database, because SQLite would accept such a line.
func validate(l reservation.OrderLine) error {
	switch {
	case !fitsColumn(l.OrderSn, maxOrderSn):
		return fmt.Errorf("order number %.80q %w", l.OrderSn, errDoesNotFit)
	case !fitsColumn(l.Name, maxName) || !fitsColumn(l.Phone, maxPhone):
		return fmt.Errorf("name or phone of order %s %w", l.OrderSn, errDoesNotFit)
	// A CHECK constraint refuses it as well, but only after the statement has reached the server.
	case l.Quantity <= 0:
		return fmt.Errorf("quantity %d of order %s %w", l.Quantity, l.OrderSn, errDoesNotFit)
	}
	return nil
}

// fitsColumn counts characters, as MySQL does. Text that is not valid UTF-8 fits no column of MySQL
// in its strict mode.
func fitsColumn(s string, most int) bool {
	return utf8.ValidString(s) && utf8.RuneCountInString(s) <= most
}
