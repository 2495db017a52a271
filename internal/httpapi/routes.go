package httpapi

import (
	"context"
	"net/http"
	"slices"
	"time"
)

// route is one call: how it is reached, what it takes and who answers.
type route struct {
	methods       []string
	path          string
	public        bool                   // no token needed
	signed        bool                   // its body is signed by the payment provider
	unchecked     bool                   // takes any fields and reads none: probes
	fields        []string               // of the query, the form or the JSON body; dotted where they are nested
	extraTime     time.Duration          // time it may take beyond the timeout of all calls
	unlimited     bool                   // asks its limits itself, later, or must always be open to operators
	countRefusals bool                   // a step of a purchase: what it refuses is counted for the merchant
	precheck      func(r *request) error // may be nil; a refusal that is known at once, so that nothing is set up for the call
	handle        func(ctx context.Context, r *request) (response, error)
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
	return append(slices.Concat(a.limiterRoutes(), a.eventRoutes(), a.deadLetterRoutes(), a.paymentRoutes(), a.sessionRoutes(), a.saleEventRoutes()), []route{
		{methods: read, path: "/livez", public: true, unchecked: true, handle: a.livez},
		{methods: read, path: "/readyz", public: true, unchecked: true, handle: a.readyz},

		{methods: read, path: "/openapi.yaml", public: true, handle: a.document},
		{methods: read, path: "/sales", public: true, fields: page, handle: a.listSales},
		{methods: read, path: "/sales/:goodsId", public: true, handle: a.showSale},
		{methods: either, path: "/randomPath", fields: []string{"goodsId"}, extraTime: maxWait, unlimited: true, countRefusals: true, precheck: a.cachedRefusal, handle: a.issuePath},
		{methods: post, path: purchaseRoute, fields: []string{"goodsId", "decrStock"}, countRefusals: true, handle: a.decrStock},

		{methods: read, path: "/orders", fields: page, handle: a.myOrders},
		{methods: read, path: "/orders/:orderSn", handle: a.findOrder},
		{methods: post, path: "/orders/:orderSn/pay", handle: a.payOrder},
		{methods: post, path: "/orders/:orderSn/cancel", handle: a.cancelOrder},

		{methods: post, path: "/admin/sales", fields: sale, handle: a.createSale},
		{methods: read, path: "/admin/sales", fields: page, handle: a.listMerchantSales},
		{methods: read, path: "/admin/sales/:goodsId", handle: a.showMerchantSale},
		{methods: []string{http.MethodPatch}, path: "/admin/sales/:goodsId", fields: change, handle: a.changeSale},
		{methods: []string{http.MethodDelete}, path: "/admin/sales/:goodsId", handle: a.deleteSale},
		{methods: read, path: "/admin/sales/:goodsId/audit", fields: page, handle: a.auditOfSale},
		{methods: post, path: "/admin/sales/:goodsId/expose", extraTime: exposeTime, handle: a.exposeSale},
		{methods: post, path: "/admin/sales/:goodsId/close", extraTime: exposeTime, handle: a.closeSale},
		{methods: read, path: "/admin/sales/:goodsId/ledger", handle: a.saleLedger},
		{methods: read, path: "/admin/sales/:goodsId/figures", handle: a.saleStatistics},
		{methods: read, path: "/admin/sales/:goodsId/orders", fields: append([]string{"status", "format"}, page...), handle: a.ordersOfSale},
	}...)
}
