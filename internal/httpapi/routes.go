package httpapi

import (
	"context"
	"net/http"
	"slices"
	"time"

	"flashsale.dev/seckill/internal/seckill"
)

// route describes one call of the API.
type route struct {
	methods   []string
	path      string
	public    bool          // needs no token
	signed    bool          // the payment provider signs the body
	unchecked bool          // ignores query and body: probes and pages
	fields    []string      // allowed in query, form and JSON body; dotted for nested members
	extraTime time.Duration // added to Options.Timeout
	unlimited bool          // no rate limit before the handler

	countErrors bool // a step of a purchase, whose errors the merchant can see
	// precheck may refuse before any timer or limit is set up; nil for none.
	precheck func(r *request) error
	handle   func(ctx context.Context, r *request) (response, error)
}

const (
	// maxWait is the longest wait for a permit that a sale's rate may ask for.
	maxWait = seckill.MaxWaitMillis * time.Millisecond
	// exposeTime is for reading a sale's reservations whole.
	exposeTime = 25 * time.Second
	// purchaseRoute is the second step of a purchase.
	purchaseRoute = "/:randomPath/decrStock"
)

func readMethods() []string { return []string{http.MethodGet, http.MethodHead} }

func pageFields() []string { return []string{"limit", "cursor"} }

func (a *api) routes() []route {
	return slices.Concat(a.buyerRoutes(), a.merchantRoutes(), a.limiterRoutes(), a.eventRoutes(),
		a.deadLetterRoutes(), a.paymentRoutes(), a.sessionRoutes(), a.saleEventRoutes())
}

func (a *api) buyerRoutes() []route {
	post := []string{http.MethodPost}
	return []route{
		{methods: readMethods(), path: "/livez", public: true, unchecked: true, handle: a.livez},
		{methods: readMethods(), path: "/readyz", public: true, unchecked: true, handle: a.readyz},
		{methods: readMethods(), path: "/openapi.yaml", public: true, handle: a.document},

		{methods: readMethods(), path: "/sales", public: true, fields: pageFields(), handle: a.listSales},
		{methods: readMethods(), path: "/sales/:goodsId", public: true, handle: a.showSale},
		{
			methods: []string{http.MethodPost, http.MethodGet}, path: pathRoute,
			fields: []string{"goodsId"}, extraTime: maxWait, unlimited: true, countErrors: true,
			precheck: a.cachedError, handle: a.issuePath,
		},
		{
			methods: post, path: purchaseRoute, fields: []string{"goodsId", "decrStock"},
			countErrors: true, handle: a.decrStock,
		},

		{methods: readMethods(), path: "/orders", fields: pageFields(), handle: a.myOrders},
		{methods: readMethods(), path: "/orders/:orderSn", handle: a.findOrder},
		{methods: post, path: "/orders/:orderSn/pay", handle: a.payOrder},
		{methods: post, path: "/orders/:orderSn/cancel", handle: a.cancelOrder},
	}
}

func (a *api) merchantRoutes() []route {
	const sales, sale = "/admin/sales", "/admin/sales/:goodsId"
	post := []string{http.MethodPost}
	common := []string{
		"title", "price", "startAt", "endAt", "perBuyerLimit",
		"rate.algorithm", "rate.permitsPerSecond", "rate.maxBurstSeconds", "rate.maxWaitMillis",
	}
	list := append([]string{"status", "format"}, pageFields()...)
	return []route{
		{methods: post, path: sales, fields: append([]string{"stock"}, common...), handle: a.createSale},
		{methods: readMethods(), path: sales, fields: pageFields(), handle: a.listMerchantSales},
		{methods: readMethods(), path: sale, handle: a.showMerchantSale},
		{
			methods: []string{http.MethodPatch}, path: sale,
			fields: append([]string{"stockDelta"}, common...), handle: a.changeSale,
		},
		{methods: []string{http.MethodDelete}, path: sale, handle: a.deleteSale},
		{methods: readMethods(), path: sale + "/audit", fields: pageFields(), handle: a.auditOfSale},
		{methods: post, path: sale + "/expose", extraTime: exposeTime, handle: a.exposeSale},
		{methods: post, path: sale + "/close", extraTime: exposeTime, handle: a.closeSale},
		{methods: readMethods(), path: sale + "/ledger", handle: a.saleLedger},
		{methods: readMethods(), path: sale + "/figures", handle: a.saleStatistics},
		{methods: readMethods(), path: sale + "/orders", fields: list, handle: a.ordersOfSale},
	}
}
