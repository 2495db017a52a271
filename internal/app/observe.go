package app

import (
	"flashsale.dev/seckill/internal/order"

	"flashsale.dev/seckill/internal/order/orderwriter"
	"flashsale.dev/seckill/internal/order/outbox"
	"flashsale.dev/seckill/internal/order/purchase"
	"flashsale.dev/seckill/internal/order/rebuild"
	"flashsale.dev/seckill/internal/order/reconcile"
)

// Observers hear of what a program does; each may be nil.
type Observers struct {
	Desk    purchase.Metrics
	Writer  orderwriter.Metrics
	Relay   outbox.Metrics
	Survey  reconcile.SampleMetrics
	Audit   reconcile.Metrics
	Rebuild rebuild.Metrics
	Tracer  order.Tracer
}
