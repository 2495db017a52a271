package httpapi

import (
	"context"
	"net/http"
	"slices"
	"time"

	"flashsale.dev/seckill/internal/seckill"
)

// route describes one call of the API. The document api/openapi.yaml describes the same calls; a
// test holds their paths, methods and fields against each other.
type route struct {
	methods   string // separated by spaces
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
	handle   handleFunc
}

type handleFunc func(ctx context.Context, r *request) (response, error)

const (
	// maxWait is the longest wait for a permit that a sale's rate may set.
	maxWait = seckill.MaxWaitMillis * time.Millisecond
	// exposeTime is for reading a sale's reservations whole.
	exposeTime = 25 * time.Second
	// purchaseRoute is the second step of a purchase.
	purchaseRoute = "/:randomPath/decrStock"
)

// Methods of routes. A call that only reads is served for HEAD too (RFC 9110, 9.3.2).
const (
	read   = http.MethodGet + " " + http.MethodHead
	post   = http.MethodPost
	remove = http.MethodDelete
)

// pageFields are the fields of every list.
func pageFields() []string { return []string{"limit", "cursor"} }

func (a *api) routes() []route {
	return slices.Concat(a.probes(), a.buyerRoutes(), a.merchantRoutes(), a.limiterRoutes(),
		a.eventRoutes(), a.deadLetterRoutes(), a.paymentRoutes(), a.sessionRoutes(),
		a.saleEventRoutes())
}

func (a *api) buyerRoutes() []route {
	return []route{
		{methods: read, path: "/openapi.yaml", public: true, handle: a.document},

		{methods: read, path: "/sales", public: true, fields: pageFields(), handle: a.listSales},
		{methods: read, path: "/sales/:goodsId", public: true, handle: a.showSale},
		{ // no rules before the handler: issuePath applies them after the check of the sale's state
			methods: post + " " + http.MethodGet, path: pathRoute, fields: []string{"goodsId"},
			extraTime: maxWait, unlimited: true, countErrors: true,
			precheck: a.cachedError, handle: a.issuePath,
		},
		{
			methods: post, path: purchaseRoute, fields: []string{"goodsId", "decrStock"},
			countErrors: true, handle: a.decrStock,
		},

		{methods: read, path: "/orders", fields: pageFields(), handle: a.myOrders},
		{methods: read, path: "/orders/:orderSn", handle: a.findOrder},
		{methods: post, path: "/orders/:orderSn/pay", handle: a.payOrder},
		{methods: post, path: "/orders/:orderSn/cancel", handle: a.cancelOrder},
	}
}

// merchantRoutes are the calls of merchants and operators. A new sale has a stock; a change of one
// has a difference to it.
func (a *api) merchantRoutes() []route {
	const sales, sale = "/admin/sales", "/admin/sales/:goodsId"
	common := []string{
		"title", "price", "startAt", "endAt", "perBuyerLimit",
		"rate.algorithm", "rate.permitsPerSecond", "rate.maxBurstSeconds", "rate.maxWaitMillis",
	}
	list := append(pageFields(), "status", "format")
	return []route{
		{methods: post, path: sales, fields: append(common, "stock"), handle: a.createSale},
		{methods: read, path: sales, fields: pageFields(), handle: a.listMerchantSales},
		{methods: read, path: sale, handle: a.showMerchantSale},
		{
			methods: http.MethodPatch, path: sale, fields: append(common, "stockDelta"),
			handle: a.changeSale,
		},
		{methods: remove, path: sale, handle: a.deleteSale},
		{methods: read, path: sale + "/audit", fields: pageFields(), handle: a.auditOfSale},
		{methods: post, path: sale + "/expose", extraTime: exposeTime, handle: a.exposeSale},
		{methods: post, path: sale + "/close", extraTime: exposeTime, handle: a.closeSale},
		{methods: read, path: sale + "/ledger", handle: a.saleLedger},
		{methods: read, path: sale + "/figures", handle: a.saleStatistics},
		{methods: read, path: sale + "/orders", fields: list, handle: a.ordersOfSale},
	}
}
