package shipping

import (
	"context"
	"encoding/json"
	"time"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/query"
	"flashsale.dev/seckill/internal/seckill"
)

// Store records addresses and shipments in MySQL.
type Store interface {
	order.Clock
	// SetAddress stores the encrypted address of an order that is created or paid and not shipped,
	// and returns the order. Any other order is a Conflict.
	SetAddress(ctx context.Context, goodsID int64, orderSn, sealed string) (order.Order, error)
	// Ship records the shipment of a paid order, for the context's actor. A later shipment replaces
	// an earlier one. Any other order is a Conflict.
	Ship(
		ctx context.Context, goodsID int64, orderSn string, shipment order.Shipment, now time.Time,
	) (order.Order, error)
	// RecordReveal records in the audit log that the context's actor has read the buyer's data.
	RecordReveal(ctx context.Context, o order.Order, now time.Time) error
	// RecordExport records in the audit log that the context's actor reads the data of a sale's
	// buyers.
	RecordExport(ctx context.Context, goodsID int64, now time.Time) error
}

// Sealer encrypts a text for storage and binds it to an order and its buyer.
type Sealer interface {
	Seal(buyerID, orderSn, text string) string
	Open(buyerID, orderSn, sealed string) (string, error)
}

// Service keeps addresses and shipments. It is safe for concurrent use.
type Service struct {
	Orders *query.Service
	Store  Store
	Sealer Sealer
}

// SetAddress stores where the actor's own order goes: a valid address. A later address replaces an
// earlier one. An order that is queued, shipped or over is a Conflict.
func (s *Service) SetAddress(
	ctx context.Context, by seckill.Actor, orderSn string, a Address,
) (order.Order, error) {
	o, err := s.Orders.FindChangeable(ctx, by, orderSn)
	if err != nil {
		return order.Order{}, err
	}
	sealed := s.Sealer.Seal(o.BuyerID, o.OrderSn, a.text())
	err = order.Change(ctx, s.Store, func(ctx context.Context, _ time.Time) error {
		o, err = s.Store.SetAddress(ctx, o.GoodsID, orderSn, sealed)
		return err
	})
	return o, query.ChangeError(err)
}

// Ship records how the merchant sent a paid order of a sale that the actor manages. A later
// shipment replaces an earlier one.
func (s *Service) Ship(
	ctx context.Context, by seckill.Actor, orderSn string, shipment order.Shipment,
) (order.Order, error) {
	o, err := s.Orders.FindManagedChangeable(ctx, by, orderSn)
	if err != nil {
		return order.Order{}, err
	}
	ctx = seckill.WithActor(ctx, by)
	err = order.Change(ctx, s.Store, func(ctx context.Context, now time.Time) error {
		o, err = s.Store.Ship(ctx, o.GoodsID, orderSn, shipment, now)
		return err
	})
	return o, query.ChangeError(err)
}

// Reveal returns an order of a sale that the actor manages, for a call that shows its buyer's data.
// The audit log names the actor.
func (s *Service) Reveal(
	ctx context.Context, by seckill.Actor, orderSn string,
) (order.Order, error) {
	o, err := s.Orders.FindManagedChangeable(ctx, by, orderSn)
	if err != nil {
		return order.Order{}, err
	}
	ctx = seckill.WithActor(ctx, by)
	err = order.Change(ctx, s.Store, func(ctx context.Context, now time.Time) error {
		return s.Store.RecordReveal(ctx, o, now)
	})
	return o, query.ChangeError(err)
}

// RecordExport must be called before an export of the orders of a sale that the actor manages. The
// audit log names the actor.
func (s *Service) RecordExport(ctx context.Context, by seckill.Actor, goodsID int64) error {
	ctx = seckill.WithActor(ctx, by)
	return query.ChangeError(order.Change(ctx, s.Store,
		func(ctx context.Context, now time.Time) error {
			return s.Store.RecordExport(ctx, goodsID, now)
		}))
}

// AddressOf decrypts an order's address; nil if it has none.
func (s *Service) AddressOf(o order.Order) (*Address, error) {
	if o.Address == "" {
		return nil, nil //nolint:nilnil // an order without an address is no error
	}
	text, err := s.Sealer.Open(o.BuyerID, o.OrderSn, o.Address)
	if err != nil {
		return nil, err
	}
	a := new(Address)
	return a, json.Unmarshal([]byte(text), a)
}
