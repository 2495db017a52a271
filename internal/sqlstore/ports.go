package sqlstore

import (
	"flashsale.dev/seckill/internal/order/deadletter"
	"flashsale.dev/seckill/internal/order/inventory"
	"flashsale.dev/seckill/internal/order/livesales"
	"flashsale.dev/seckill/internal/order/orderwriter"
	"flashsale.dev/seckill/internal/order/payment"
	"flashsale.dev/seckill/internal/order/query"
	"flashsale.dev/seckill/internal/order/rebuild"
	"flashsale.dev/seckill/internal/order/reconcile"
	"flashsale.dev/seckill/internal/order/stats"
)

// The interfaces of the services that a Store implements.
var (
	_ inventory.Store        = (*Store)(nil)
	_ rebuild.Store          = (*Store)(nil)
	_ reconcile.Store        = (*Store)(nil)
	_ orderwriter.BatchStore = (*Store)(nil)
	_ stats.OrderCounter     = (*Store)(nil)
	_ query.Store            = (*Store)(nil)
	_ payment.Store          = (*Store)(nil)
	_ deadletter.Store       = (*Store)(nil)
	_ livesales.Store        = (*Store)(nil)
)
