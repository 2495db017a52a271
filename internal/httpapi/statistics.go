package httpapi

import (
	"context"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/stats"
	"flashsale.dev/seckill/internal/seckill"
)

// statisticsResponse has a count for every status and reason, even if it is 0. A dashboard then
// draws a line at 0 instead of a gap.
type statisticsResponse struct {
	Status           seckill.Status                 `json:"status"`
	Phase            seckill.Phase                  `json:"phase,omitzero"`
	Total            int64                          `json:"total"`
	Available        int64                          `json:"available"`
	Pending          int64                          `json:"pending"`
	Sold             int64                          `json:"sold"`
	Paid             int64                          `json:"paid"`
	PaidAmount       int64                          `json:"paidAmount"`
	Orders           map[order.Status]countResponse `json:"orders"`
	BacklogAgeMillis int64                          `json:"backlogAgeMillis"`
	Unconfirmed      int64                          `json:"unconfirmed"`
	OrdersPerSecond  float64                        `json:"ordersPerSecond"`
	Refusals         map[apierror.Reason]int64      `json:"refusals"`
	RefusalsSince    timestamp                      `json:"refusalsSince,omitzero"`
	ServerTime       timestamp                      `json:"serverTime"`
}

type countResponse struct {
	Orders int64 `json:"orders"`
	Units  int64 `json:"units"`
	Amount int64 `json:"amount"`
}

// saleStatistics is GET /admin/sales/{goodsId}/figures.
func (a *api) saleStatistics(ctx context.Context, r *request) (response, error) {
	return a.statistics(ctx, r, a.Statistics.Statistics)
}

// recentStatistics is saleStatistics for a console.
func (a *api) recentStatistics(ctx context.Context, r *request) (response, error) {
	return a.statistics(ctx, r, a.Statistics.Recent)
}

func (a *api) statistics(
	ctx context.Context, r *request,
	read func(ctx context.Context, by seckill.Actor, goodsID int64) (stats.Statistics, error),
) (response, error) {
	id, err := a.managedGoodsID(ctx, r)
	if err != nil {
		return response{}, err
	}
	f, err := read(ctx, r.actor, id)
	if err != nil {
		return response{}, err
	}
	v := f.View
	shown := statisticsResponse{
		Status: v.Status, Total: v.Total, Available: v.Available, Pending: v.Pending, Sold: v.Sold,
		Paid: f.Orders[order.Paid].Units, PaidAmount: f.Orders[order.Paid].Amount,
		Orders:           make(map[order.Status]countResponse),
		BacklogAgeMillis: f.BacklogAge.Milliseconds(), Unconfirmed: v.Outbox,
		OrdersPerSecond: f.Rates.OrdersPerSecond,
		Refusals:        make(map[apierror.Reason]int64), RefusalsSince: timestamp(f.Rates.Since),
		ServerTime: timestamp(v.Now),
	}
	for _, reason := range stats.CountedReasons() {
		shown.Refusals[reason] = f.Rates.Refusals[reason]
	}
	if v.Status != seckill.Draft {
		shown.Phase = v.Phase()
	}
	for _, s := range order.Statuses() {
		if s != order.Queued { // MySQL does not have these
			shown.Orders[s] = countResponse(f.Orders[s])
		}
	}
	return ok(shown), nil
}
