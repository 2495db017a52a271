package sqlstore

import (
	"cmp"
	"time"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
)

// saleRow and the other rows are what GORM reads, each from the table of its TableName. Times are
// Unix milliseconds. No field is named CreatedAt or UpdatedAt, which GORM would set itself.
type saleRow struct {
	GoodsID          int64 `gorm:"primaryKey;autoIncrement:false"`
	MerchantID       string
	Title            string
	Price            int64
	Total            int64
	Stock            int64
	Version          int64
	Epoch            int64
	RebuildToken     int64
	OpenedOn         string // see openings.go
	PerBuyerLimit    int64
	MaxPerBuyerLimit int64
	StartAt          int64
	EndAt            int64
	RateAlgorithm    string
	PermitsPerSecond float64
	MaxBurstSeconds  float64
	MaxWaitMillis    int64
	Admission        seckill.Admission
	AccessCode       seckill.AccessCode
	Status           seckill.Status
	Created          int64  `gorm:"column:created_at"`
	Updated          int64  `gorm:"column:updated_at"`
	Closed           *int64 `gorm:"column:closed_at"`
	RetiredAt        *int64 `gorm:"column:retired_at"`
	seckill.Details  `gorm:"embedded"`
	ExternalID       *string
	Metadata         *string
}

func (saleRow) TableName() string { return "sales" }

// rowOfSale converts a new sale.
func rowOfSale(s seckill.Sale) saleRow { return saleRow{}.with(s) }

// with returns the row with a sale's fields. The columns without a field in seckill.Sale keep their
// values: the rebuild token, the opening, and when the sale was closed and retired.
func (r saleRow) with(s seckill.Sale) saleRow {
	r.GoodsID, r.MerchantID, r.Title, r.Price = s.GoodsID, s.MerchantID, s.Title, s.Price
	r.Total, r.Stock, r.Version, r.Epoch = s.Total, s.Stock, s.Version, s.Epoch
	r.PerBuyerLimit, r.MaxPerBuyerLimit = s.PerBuyerLimit, s.MaxPerBuyerLimit
	r.StartAt, r.EndAt = s.StartAt.UnixMilli(), s.EndAt.UnixMilli()
	r.RateAlgorithm, r.PermitsPerSecond = s.Rate.Algorithm, s.Rate.PermitsPerSecond
	r.MaxBurstSeconds, r.MaxWaitMillis = s.Rate.MaxBurstSeconds, s.Rate.MaxWaitMillis
	r.Admission, r.AccessCode = s.Admission, cmp.Or(s.AccessCode, seckill.NoCodes)
	r.Status, r.Created, r.Updated = s.Status, s.CreatedAt.UnixMilli(), s.UpdatedAt.UnixMilli()
	r.Details, r.ExternalID = s.Details, orNull(s.Details.ExternalID)
	r.Metadata = orNull(s.Details.Metadata)
	return r
}

// orNull returns nil for an empty text.
func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func (r saleRow) sale() seckill.Sale {
	r.Details.ExternalID, r.Details.Metadata = text(r.ExternalID), text(r.Metadata)
	return seckill.Sale{
		GoodsID: r.GoodsID, MerchantID: r.MerchantID, Title: r.Title, Price: r.Price,
		Total: r.Total, Stock: r.Stock, Version: r.Version, Epoch: r.Epoch,
		PerBuyerLimit: r.PerBuyerLimit, MaxPerBuyerLimit: r.MaxPerBuyerLimit,
		StartAt: timeOf(&r.StartAt), EndAt: timeOf(&r.EndAt),
		Rate: seckill.Rate{
			Algorithm: r.RateAlgorithm, PermitsPerSecond: r.PermitsPerSecond,
			MaxBurstSeconds: r.MaxBurstSeconds, MaxWaitMillis: r.MaxWaitMillis,
		},
		Admission: r.Admission, AccessCode: r.AccessCode, Status: r.Status,
		CreatedAt: timeOf(&r.Created), UpdatedAt: timeOf(&r.Updated),
		Retired: r.RetiredAt != nil, Details: r.Details,
	}
}

// text returns an empty text for NULL.
func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// orderRow is an order with its times as they are stored: GORM takes the outer one of two fields
// for a column. A time is NULL until the order reaches that state.
type orderRow struct {
	order.Order `gorm:"embedded"`
	Created     int64 `gorm:"column:created_at"`
	PayBy       *int64
	PaidAt      *int64
	ClosedAt    *int64
	ShippedAt   *int64
}

func (orderRow) TableName() string { return "orders" }

func (r orderRow) order() order.Order {
	o := r.Order
	o.CreatedAt, o.PayBy = timeOf(&r.Created), timeOf(r.PayBy)
	o.PaidAt, o.ClosedAt, o.ShippedAt = timeOf(r.PaidAt), timeOf(r.ClosedAt), timeOf(r.ShippedAt)
	return o
}

// holdingRow is how many units of a goods a buyer's active orders hold. Writers change it together
// with the orders, so a batch checks a limit by one row per buyer instead of all their orders.
type holdingRow struct {
	GoodsID int64  `gorm:"primaryKey;autoIncrement:false"`
	BuyerID string `gorm:"primaryKey;autoIncrement:false"`
	Held    int64
}

func (holdingRow) TableName() string { return "buyer_holdings" }

// moveRow is a stock move with its time as it is stored: GORM takes the outer one of two fields for
// a column. GivenAt is NULL until Redis has applied the move; the column keeps the name that
// earlier releases wrote.
type moveRow struct {
	order.StockMove `gorm:"embedded"`
	MadeAt          int64
	GivenAt         *int64
}

func (moveRow) TableName() string { return "stock_moves" }

// rowOfMove converts a stock move.
func rowOfMove(m order.StockMove) moveRow {
	return moveRow{StockMove: m, MadeAt: m.MadeAt.UnixMilli()}
}

func (r moveRow) move() order.StockMove {
	r.StockMove.MadeAt = timeOf(&r.MadeAt)
	return r.StockMove
}

// deadLetterRow keeps a message unchanged, so that an operator can requeue it.
type deadLetterRow struct {
	order.DeadLetter `gorm:"embedded"`
	FirstSeenAt      int64
}

func (deadLetterRow) TableName() string { return "dead_letters" }

func (r deadLetterRow) deadLetter() order.DeadLetter {
	r.DeadLetter.FirstSeenAt = timeOf(&r.FirstSeenAt)
	return r.DeadLetter
}

// barrierRow records that everything published before a barrier is committed. A rebuild waits for
// the row of its own token.
type barrierRow struct {
	GoodsID   int64 `gorm:"primaryKey;autoIncrement:false"`
	Epoch     int64 `gorm:"primaryKey;autoIncrement:false"`
	Token     int64 `gorm:"primaryKey;autoIncrement:false"`
	ReachedAt int64
}

func (barrierRow) TableName() string { return "barriers" }

// millis is a time as it is stored: Unix milliseconds, NULL for the zero time.
func millis(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	return new(t.UnixMilli())
}

// timeOf is the reverse of millis, in UTC.
func timeOf(ms *int64) time.Time {
	if ms == nil {
		return time.Time{}
	}
	return time.UnixMilli(*ms).UTC()
}
