package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"gorm.io/gorm"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/message"
	"flashsale.dev/seckill/internal/order/orderwriter"
	"flashsale.dev/seckill/internal/order/rebuild"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/seckill/salechange"
)

// WriteFailed writes one order that WriteBatch cannot write as failed, with its dead letter and the
// stock move that returns its units, in one transaction. It leaves an existing number unchanged and
// reports it in the outcome's Existing. It accepts an unknown goods, so that every promised number
// ends as a row.
//
// The dead letter has the order's goods and the reason. WriteFailed fills in its other fields where
// they are empty, and truncates text that is too long. An order number that does not fit is an
// error: store such a message with AddDeadLetter.
func (s *Store) WriteFailed(
	ctx context.Context, line reservation.OrderLine, dead order.DeadLetter, now time.Time,
) (order.Outcome, error) {
	dead = withDefaults(dead, line, now)
	const op = "write a failed order"
	out, err := inSaleTx(ctx, s, op, dead.GoodsID,
		func(tx *gorm.DB, sale saleRow) (order.Outcome, error) {
			p, err := planFailed(tx, sale, line, dead, now)
			if err != nil {
				return order.Outcome{}, err
			}
			return p.out, p.write(tx)
		})
	if !errors.Is(err, seckill.ErrNoSuchGoods) {
		return out, err
	}
	// The buyer was promised this number, so it ends as a row even where its sale is unknown.
	return inTx(ctx, s, op, func(tx *gorm.DB) (order.Outcome, error) {
		p, err := planFailed(tx, saleRow{GoodsID: dead.GoodsID}, line, dead, now)
		if err != nil {
			return order.Outcome{}, err
		}
		p.out.Moves = nil // Redis never has this sale, so the releaser would try without end
		return p.out, p.write(tx)
	})
}

// WriteMissing is WriteFailed for an order of which a rebuild has found no row. For a token that is
// not the newest it writes nothing and returns rebuild.ErrFenced: the order may be of a newer
// epoch, and on its way. The error of an unknown goods is seckill.ErrNoSuchGoods.
func (s *Store) WriteMissing(
	ctx context.Context, token int64, line reservation.OrderLine, dead order.DeadLetter,
	now time.Time,
) error {
	dead = withDefaults(dead, line, now)
	const op = "write a missing order"
	return s.inSaleTx(ctx, op, dead.GoodsID, func(tx *gorm.DB, sale saleRow) error {
		if sale.RebuildToken != token {
			return rebuild.ErrFenced
		}
		p, err := planFailed(tx, sale, line, dead, now)
		if err != nil {
			return err
		}
		return p.write(tx)
	})
}

// planFailed plans what WriteFailed writes of one order, in a transaction that has the lock of the
// sale's row, and drops the order's parked copy.
func planFailed(
	tx *gorm.DB, sale saleRow, line reservation.OrderLine, deadLetter order.DeadLetter,
	now time.Time,
) (*batchPlan, error) {
	if !fitsColumn(line.OrderSn, maxOrderSn) {
		return nil, fmt.Errorf("number %.80q %w", line.OrderSn, errDoesNotFit)
	}
	line = truncateLine(line)
	existing, tombstones, err := existingOrders(tx, sale.GoodsID, []string{line.OrderSn})
	if err != nil {
		return nil, err
	}
	p := newPlan(sale, now, 1)
	p.out.Existing = existing
	switch {
	// A line without units has nothing to return and does not change its tombstone.
	case tombstones[line.OrderSn] && line.Quantity > 0:
		p.addTombstone(line, deadLetter)
	case len(existing) > 0:
	default:
		p.addFailed(line, deadLetter)
	}
	return p, unpark(tx, sale.GoodsID, []string{line.OrderSn})
}

// AddDeadLetter stores the dead letter of a message, or of an order without a row, and drops the
// order's parked copy. The same id is stored once.
func (s *Store) AddDeadLetter(ctx context.Context, deadLetter order.DeadLetter) error {
	row := rowOfDeadLetter(deadLetter)
	return s.inTx(ctx, "add a dead letter", func(tx *gorm.DB) error {
		if err := createOnce(tx, &row); err != nil || deadLetter.OrderSn == "" {
			return err
		}
		return unpark(tx, deadLetter.GoodsID, []string{deadLetter.OrderSn})
	})
}

// DeadLetters lists at most limit dead letters, oldest first, with ids after the given one (empty:
// from the oldest).
func (s *Store) DeadLetters(
	ctx context.Context, after string, limit int,
) ([]order.DeadLetter, error) {
	q := s.read(ctx).Where("id > ?", after).Order("id").Limit(limit)
	return list("list dead letters", q, deadLetterRow.deadLetter)
}

// DeadLetter returns one dead letter, or order.ErrNoSuchDeadLetter.
func (s *Store) DeadLetter(ctx context.Context, id string) (order.DeadLetter, error) {
	row, err := take[deadLetterRow](s.read(ctx).Where("id = ?", id), order.ErrNoSuchDeadLetter)
	return row.deadLetter(), wrapError("read a dead letter", err)
}

// RemoveDeadLetter deletes a dead letter, in one transaction with its entry in the audit log. It
// returns order.ErrNoSuchDeadLetter if there is none, so that one of two concurrent callers gets
// the error.
func (s *Store) RemoveDeadLetter(ctx context.Context, id string, now time.Time) error {
	return s.inTx(ctx, "remove a dead letter", func(tx *gorm.DB) error {
		row, err := take[deadLetterRow](locked(tx).Where("id = ?", id), order.ErrNoSuchDeadLetter)
		if err != nil {
			return err
		}
		if err := tx.Where("id = ?", id).Delete(&deadLetterRow{}).Error; err != nil {
			return err
		}
		return auditDeadLetter(tx, salechange.ActDiscardOrder, row.GoodsID, row.OrderSn, id, now)
	})
}

// auditDeadLetter records an operator's decision about a dead letter.
func auditDeadLetter(
	tx *gorm.DB, action salechange.Action, goodsID int64, orderSn, id string, now time.Time,
) error {
	e := orderEntry(tx, action, goodsID, orderSn, now)
	e.Became["deadLetterId"] = id
	return tx.Create(e).Error
}

// deadLetterOf returns the dead letter of one order of a batch, with its message's history in the
// queue.
func deadLetterOf(
	b orderwriter.Batch, l reservation.OrderLine, reason order.FailureReason,
) order.DeadLetter {
	from := b.Deliveries[l.OrderSn]
	d := order.DeadLetter{
		GoodsID: b.GoodsID, Reason: reason,
		Attempts: from.Attempts, FirstSeenAt: from.FirstSeenAt, Origin: from.Origin,
	}
	return withDefaults(d, l, b.Now)
}

// withDefaults fills in the empty fields of an order's dead letter. Its body is a message with this
// one order, which can be published again.
func withDefaults(
	d order.DeadLetter, l reservation.OrderLine, now time.Time,
) order.DeadLetter {
	d.OrderSn = l.OrderSn
	d.Attempts, d.Origin = cmp.Or(d.Attempts, 1), cmp.Or(d.Origin, originBatch)
	if d.FirstSeenAt.IsZero() {
		d.FirstSeenAt = now
	}
	if d.Body == nil {
		d.Body = message.EncodeOrder(d.GoodsID, l)
	}
	return d
}

func rowOfDeadLetter(d order.DeadLetter) deadLetterRow {
	if d.ID == "" {
		d.ID = newID()
	}
	if d.Body == nil {
		// The column is NOT NULL, and an empty message is a message too.
		d.Body = []byte{}
	}
	d.OrderSn, d.Origin = truncate(d.OrderSn, maxOrderSn), truncate(d.Origin, maxOrigin)
	return deadLetterRow{DeadLetter: d, FirstSeenAt: d.FirstSeenAt.UnixMilli()}
}

// truncateLine returns a line that every database accepts; the dead letter keeps the original.
func truncateLine(l reservation.OrderLine) reservation.OrderLine {
	l.Name, l.Phone = truncate(l.Name, maxName), truncate(l.Phone, maxPhone)
	// A quantity that the CHECK constraint refuses would make the order impossible to write at all.
	l.Quantity = min(max(l.Quantity, 0), seckill.MaxPerBuyerLimit)
	return l
}

// truncate returns valid UTF-8 of at most the given number of characters.
func truncate(s string, most int) string {
	r := []rune(strings.ToValidUTF8(s, "\uFFFD"))
	return string(r[:min(len(r), most)])
}

// CountDeadLetters counts all dead letters.
func (s *Store) CountDeadLetters(ctx context.Context) (int64, error) {
	return count[deadLetterRow]("count dead letters", s.read(ctx))
}
