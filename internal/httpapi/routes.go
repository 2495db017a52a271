package httpapi

import (
	"context"
	"net/http"
	"slices"
	"time"
)

// route is one call: how it is reached, what it takes and who answers.
type route struct {
	methods   []string
	path      string
	open      bool                   // no token needed
	signed    bool                   // its body is signed by the payment provider
	lax       bool                   // takes any fields and reads none: probes
	fields    []string               // of the query, the form or the JSON body; dotted where they are nested
	patience  time.Duration          // time it may take beyond the timeout of all calls
	unguarded bool                   // asks its limits itself, later, or must always be open to operators
	tallied   bool                   // a step of a purchase: what it refuses is counted for the merchant
	refused   func(r *request) error // may be nil; a refusal that is known at once, so that nothing is set up for the call
	do        func(ctx context.Context, r *request) (answer, error)
}

// maxWait is the longest wait a rate may ask for (seckill.MaxWaitMillis); exposing reads a sale's holdings whole.
const (
	maxWait    = time.Minute
	exposeTime = 25 * time.Second
)

// purchaseRoute is the second step of a purchase.
const purchaseRoute = "/:randomPath/decrStock"

func (a *api) routes() []route {
	read, post, either := []string{http.MethodGet, http.MethodHead}, []string{http.MethodPost}, []string{http.MethodPost, http.MethodGet}
	page := []string{"limit", "cursor"}
	sale := []string{
		"title", "price", "stock", "startAt", "endAt", "perBuyerLimit",
		"rate.algorithm", "rate.permitsPerSecond", "rate.maxBurstSeconds", "rate.maxWaitMillis",
	}
	change := slices.Concat([]string{"stockDelta"}, slices.DeleteFunc(slices.Clone(sale), func(f string) bool {
		return f == "stock" // it changes by stockDelta
	}))
	return append(slices.Concat(a.limiterRoutes(), a.eventRoutes(), a.letterRoutes(), a.paymentRoutes(), a.sessionRoutes(), a.saleEventRoutes()), []route{
		{methods: read, path: "/livez", open: true, lax: true, do: a.livez},
		{methods: read, path: "/readyz", open: true, lax: true, do: a.readyz},

		{methods: read, path: "/openapi.yaml", open: true, do: a.document},
		{methods: read, path: "/sales", open: true, fields: page, do: a.listSales},
		{methods: read, path: "/sales/:goodsId", open: true, do: a.showSale},
		{methods: either, path: "/randomPath", fields: []string{"goodsId"}, patience: maxWait, unguarded: true, tallied: true, refused: a.refusedPath, do: a.issuePath},
		{methods: post, path: purchaseRoute, fields: []string{"goodsId", "decrStock"}, tallied: true, do: a.decrStock},

		{methods: read, path: "/orders", fields: page, do: a.myOrders},
		{methods: read, path: "/orders/:orderSn", do: a.findOrder},
		{methods: post, path: "/orders/:orderSn/pay", do: a.payOrder},
		{methods: post, path: "/orders/:orderSn/cancel", do: a.cancelOrder},

		{methods: post, path: "/admin/sales", fields: sale, do: a.createSale},
		{methods: read, path: "/admin/sales", fields: page, do: a.ownSales},
		{methods: read, path: "/admin/sales/:goodsId", do: a.ownSale},
		{methods: []string{http.MethodPatch}, path: "/admin/sales/:goodsId", fields: change, do: a.changeSale},
		{methods: []string{http.MethodDelete}, path: "/admin/sales/:goodsId", do: a.deleteSale},
		{methods: read, path: "/admin/sales/:goodsId/audit", fields: page, do: a.auditOfSale},
		{methods: post, path: "/admin/sales/:goodsId/expose", patience: exposeTime, do: a.exposeSale},
		{methods: post, path: "/admin/sales/:goodsId/close", patience: exposeTime, do: a.closeSale},
		{methods: read, path: "/admin/sales/:goodsId/ledger", do: a.ledger},
		{methods: read, path: "/admin/sales/:goodsId/figures", do: a.figures},
		{methods: read, path: "/admin/sales/:goodsId/orders", fields: append([]string{"status", "format"}, page...), do: a.ordersOfSale},
	}...)
}
