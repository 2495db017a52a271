package app

import "flashsale.dev/seckill/internal/order"

// Observers hear of what a program does; each may be nil.
type Observers struct {
	Desk    order.DeskObserver
	Writer  order.WriterObserver
	Relay   order.RelayObserver
	Survey  order.SurveyObserver
	Audit   order.AuditObserver
	Rebuild order.RebuildObserver
	Tracer  order.Tracer
}
