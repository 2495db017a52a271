package sqlstore

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"gorm.io/gorm"

	"flashsale.dev/seckill/internal/event"
	"flashsale.dev/seckill/internal/order"
)

// eventRow is the events of one type that one transaction made of a sale or its orders.
type eventRow struct {
	GoodsID    int64  `gorm:"primaryKey;autoIncrement:false"`
	ID         string `gorm:"primaryKey"`
	MerchantID string
	Type       event.Type
	OrderSns   []string `gorm:"serializer:json"` // empty for an event of the sale
	Size       int64
	OccurredAt int64
	Ranking    int
	Position   *int64 // of the last event; NULL until the sequencer has placed the row
}

func (eventRow) TableName() string { return "events" }

// first returns the position of the row's first event.
func (r eventRow) first() int64 { return *r.Position - r.Size + 1 }

// eventsPerRow bounds the length of a row.
const eventsPerRow = 500

// changeTime returns the time of a change to a sale or its orders. It is now, but at least a
// millisecond after the sale's last change: a clock may lag, and now may be older than the lock.
// The sale's row is locked and stores that time, so two transactions of a sale never share one.
// Payments do not lock the row: event.Type.Ranking orders their events. Each millisecond has room
// for one transaction, which is more than one sale commits.
func changeTime(sale saleRow, now time.Time) time.Time {
	return time.UnixMilli(max(now.UnixMilli(), sale.Updated+1)).UTC()
}

// latest returns the later one of two times; a NULL is no time.
func latest(now time.Time, ms *int64) time.Time {
	if ms == nil || now.UnixMilli() >= *ms {
		return now
	}
	return timeOf(ms)
}

// addOrderEvents writes the events of changed orders in the transaction of their change. at is not
// before an earlier change of any of them. A sale that does not exist has no merchant who could
// read the events.
func addOrderEvents(
	tx *gorm.DB, sale saleRow, kind event.Type, sns []string, at time.Time,
) error {
	if sale.MerchantID == "" {
		return nil
	}
	rows := make([]eventRow, 0, 1)
	for part := range slices.Chunk(sns, eventsPerRow) {
		rows = append(rows, newEventRow(sale, kind, part, at))
	}
	return insertEvents(tx, rows)
}

// addEventsAlone is addOrderEvents for a change that leaves the stock as it is. It stores the time,
// so that the sale's next change is later.
func addEventsAlone(
	tx *gorm.DB, sale saleRow, kind event.Type, sns []string, at time.Time,
) error {
	if err := addOrderEvents(tx, sale, kind, sns, at); err != nil {
		return err
	}
	return tx.Exec("UPDATE sales SET updated_at = ? WHERE goods_id = ?", at.UnixMilli(),
		sale.GoodsID).Error
}

// addSaleEvent writes the event of a changed sale in the transaction of the change.
func addSaleEvent(tx *gorm.DB, sale saleRow, kind event.Type, at time.Time) error {
	return insertEvents(tx, []eventRow{newEventRow(sale, kind, nil, at)})
}

func newEventRow(sale saleRow, kind event.Type, sns []string, at time.Time) eventRow {
	return eventRow{
		GoodsID: sale.GoodsID, ID: newID(), MerchantID: sale.MerchantID,
		Type: kind, OrderSns: sns, Size: int64(max(1, len(sns))), OccurredAt: at.UnixMilli(),
		Ranking: kind.Ranking(),
	}
}

// insertEvents avoids GORM's reflection, because every batch of orders writes events.
func insertEvents(tx *gorm.DB, rows []eventRow) error {
	const columns = "goods_id, id, merchant_id, type, order_sns, size, occurred_at, ranking"
	const tuple = "(?,?,?,?,?,?,?,?)"
	return insertValues(tx, "events", columns, tuple, rows, func(values []any, r *eventRow) []any {
		sns, _ := json.Marshal(r.OrderSns) // strings always encode
		return append(values, r.GoodsID, r.ID, r.MerchantID, string(r.Type), string(sns), r.Size,
			r.OccurredAt, r.Ranking)
	})
}

// headRow is the last position that was assigned.
type headRow struct {
	ID       int64 `gorm:"primaryKey;autoIncrement:false"`
	Position int64
}

func (headRow) TableName() string { return "event_head" }

// theHead is the id of the only row.
const theHead = 1

var errNoHead = errors.New("no event was placed yet")

// EventHead returns the last position that was assigned; 0 before the first.
func (s *Store) EventHead(ctx context.Context) (int64, error) {
	row, err := take[headRow](s.read(ctx).Where("id = ?", theHead), errNoHead)
	if errors.Is(err, errNoHead) {
		return 0, nil
	}
	return row.Position, wrapError("read the head of the events", err)
}

// PlaceEvents assigns the next positions to at most limit rows, the oldest first. It returns how
// many it found.
//
// The transaction holds the lock of the head until it commits, so positions become visible in
// ascending order. It reads the rows after it has the lock, in one statement without locks. Where
// that statement sees a change, it also sees the order's earlier changes. These have positions
// already, or are older and get theirs first.
func (s *Store) PlaceEvents(ctx context.Context, limit int) (int, error) {
	// Most of the time there are none; the lock would make idle sequencers wait for one another.
	var waiting []string
	err := unplaced(s.read(ctx)).Limit(1).Pluck("id", &waiting).Error
	if err != nil || len(waiting) == 0 {
		return 0, wrapError("find new events", err)
	}
	return inTx(ctx, s, "place events", func(tx *gorm.DB) (int, error) {
		head, err := lockHead(tx)
		if err != nil {
			return 0, err
		}
		var rows []eventRow
		err = unplaced(tx).Select("goods_id", "id", "size").
			Order("occurred_at, ranking, goods_id, id").Limit(limit).Find(&rows).Error
		if err != nil {
			return 0, err
		}
		for _, r := range rows {
			head.Position += r.Size
			err := updateOne(tx.Exec(`UPDATE events SET position = ?
				WHERE goods_id = ? AND id = ? AND position IS NULL`, head.Position, r.GoodsID, r.ID))
			if err != nil {
				return 0, err
			}
		}
		return len(rows), tx.Exec("UPDATE event_head SET position = ? WHERE id = ?",
			head.Position, theHead).Error
	})
}

func unplaced(q *gorm.DB) *gorm.DB {
	return q.Model(&eventRow{}).Where("position IS NULL")
}

// lockHead locks the head, and makes its row before the first events.
func lockHead(tx *gorm.DB) (headRow, error) {
	find := func() (headRow, error) {
		return take[headRow](locked(tx).Where("id = ?", theHead), errNoHead)
	}
	row, err := find()
	if !errors.Is(err, errNoHead) {
		return row, err
	}
	if err := createOnce(tx, &headRow{ID: theHead}); err != nil {
		return row, err
	}
	return find()
}

// rowsOfEvents is how many rows one statement of Events reads. Each may hold 500 events.
const rowsOfEvents = 20

// Events lists at most limit placed events, by position.
func (s *Store) Events(ctx context.Context, f event.Filter, limit int) ([]event.Event, error) {
	var found []event.Event
	for after := f.After; len(found) < limit; {
		rows, err := s.eventRows(ctx, f, after)
		if err != nil {
			return nil, wrapError("list events", err)
		}
		for _, r := range rows {
			if len(found) < limit {
				found = append(found, eventsOf(r, f, limit-len(found))...)
			}
			after = *r.Position
		}
		if len(rows) < rowsOfEvents {
			break
		}
	}
	found, err := s.withData(ctx, found)
	return found, wrapError("read the data of events", err)
}

// eventRows reads the next rows that hold a position above one.
func (s *Store) eventRows(
	ctx context.Context, f event.Filter, after int64,
) (rows []eventRow, err error) {
	q := s.read(ctx).Where("position > ?", after)
	if f.MerchantID != "" {
		q = q.Where("merchant_id = ?", f.MerchantID)
	}
	if f.To > 0 { // the last row may reach above it
		q = q.Where("position < ?", f.To+eventsPerRow)
	}
	if len(f.Types) > 0 {
		q = q.Where("type IN ?", f.Types)
	}
	err = q.Order("position").Limit(rowsOfEvents).Find(&rows).Error
	return rows, err
}

// eventsOf returns the first events of a row that the filter's positions choose.
func eventsOf(r eventRow, f event.Filter, limit int) (list []event.Event) {
	for i := range r.Size {
		position := r.first() + i
		if position <= f.After || f.To > 0 && position > f.To || len(list) == limit {
			continue
		}
		e := event.Event{Position: position, Type: r.Type, At: timeOf(&r.OccurredAt)}
		e.Sale.GoodsID = r.GoodsID
		if len(r.OrderSns) > 0 {
			e.Order.OrderSn = r.OrderSns[i]
		}
		list = append(list, e)
	}
	return list
}

// withData reads the sales and orders of events.
func (s *Store) withData(ctx context.Context, events []event.Event) ([]event.Event, error) {
	bySale := make(map[int64][]string)
	for _, e := range events {
		sns := bySale[e.Sale.GoodsID]
		if e.Order.OrderSn != "" {
			sns = append(sns, e.Order.OrderSn)
		}
		bySale[e.Sale.GoodsID] = sns
	}
	sales, orders := make(map[int64]saleRow), make(map[string]order.Order)
	for goodsID, sns := range bySale {
		row, err := findSale(s.read(ctx), goodsID)
		if err != nil {
			return nil, err
		}
		sales[goodsID] = row
		slices.Sort(sns)
		for part := range slices.Chunk(slices.Compact(sns), chunkOf(s.db)) {
			found, err := s.writtenOrders(ctx, goodsID, part)
			if err != nil {
				return nil, err
			}
			for _, o := range found {
				orders[o.OrderSn] = o
			}
		}
	}
	for i, e := range events {
		events[i].Sale = sales[e.Sale.GoodsID].sale()
		if o, written := orders[e.Order.OrderSn]; written {
			events[i].Order = o
		}
	}
	return events, nil
}
