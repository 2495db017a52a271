package httpapi

import (
	"context"
	"net/http"
	"slices"
	"time"

	"flashsale.dev/seckill/internal/apikey"
	"flashsale.dev/seckill/internal/seckill"
)

// route describes one call of the API. The document api/openapi.yaml describes the same calls; a
// test holds their paths, methods and fields against each other.
type route struct {
	methods   string // separated by spaces
	path      string
	public    bool                     // needs no token
	callers   func(seckill.Actor) bool // who may call, unless it is public; nil: nobody
	signed    bool                     // the payment provider signs the body
	webhook   bool                     // signed in the provider's own way; the handler verifies the body
	unchecked bool                     // ignores query and body: probes and pages
	fields    []string                 // allowed in query, form and JSON body; dotted for nested members
	lists     []string                 // those of fields that are lists
	scope     apikey.Scope             // that an API key needs; "": the call refuses API keys
	extraTime time.Duration            // added to callTimeout
	unlimited bool                     // permit applies no rate limit

	countErrors bool // a step of a purchase, whose errors the merchant can see
	// precheck may refuse before any timer or limit is set up; nil for none.
	precheck func(r *request) error
	handle   handleFunc
}

type handleFunc func(ctx context.Context, r *request) (response, error)

const (
	// callTimeout limits a call, except for a route's extra time.
	callTimeout = 5 * time.Second
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

// routes are the calls of the API. /randomPath is unlimited here, because issuePath itself applies
// its rules, after the check of the sale's state. Limiters are not limited: an operator could not
// correct a limit that is too low. Their key is a wildcard because an IPv6 network contains a
// slash. No API key may call the routes of API keys, because it could make itself stronger keys.
// Signing in needs no session, and signing out accepts an expired one.
func (a *api) routes() []route {
	const (
		sales, sale = "/admin/sales", "/admin/sales/:goodsId"
		myOrder     = "/orders/:orderSn"
		room        = "/sales/:goodsId/waiting-room"
		limiter     = "/admin/limiters/:type/*key"
		deadLetters = "/admin/dead-letters"
		refunds     = "/admin/refunds"
		webhooks    = "/admin/webhooks"
		apiKeys     = "/admin/api-keys"
		session     = "/session"

		managedOrder = "/admin/orders/:orderSn"
		put, patch   = http.MethodPut, http.MethodPatch
		stream       = http.MethodGet // without HEAD
	)
	page, goods := []string{"limit", "cursor"}, []string{"goodsId"}
	ticket := []string{"ticket"}
	ofSale := []string{
		"title", "price", "startAt", "endAt", "perBuyerLimit",
		"rate.algorithm", "rate.permitsPerSecond", "rate.maxBurstSeconds", "rate.maxWaitMillis",
		"admission", "accessCode", "description", "imageUrl", "externalId", "metadata.*", "currency",
	}
	ofAddress := []string{
		"name", "phone", "email", "line1", "line2", "city", "postalCode", "country", "note",
	}
	ofWebhook := []string{"url", "eventTypes", "maxBatch", "maxPerSecond", "enabled"}
	listed := []string{"eventTypes"}
	ofLimiter := []string{
		"algorithm", "permitsPerSecond", "maxBurstSeconds", "maxWaitMillis", "burst", "delay",
		"nodelay", "limit", "intervalSeconds", "parts", "warmupSeconds", "coldFactor",
	}
	return slices.Concat([]route{
		{methods: read, path: "/openapi.yaml", public: true, handle: a.document},
		{
			methods: read, path: "/sales", public: true, fields: append(page, "phase"),
			handle: a.listSales,
		},
		{methods: read, path: "/sales/:goodsId", public: true, handle: a.showSale},
		{methods: read, path: room, public: true, handle: a.showRoom},
		{
			methods: post, path: "/payments/callback", public: true, signed: true,
			fields: []string{"paymentId", "orderSn", "amount"}, handle: a.receivePayment,
		},
		{
			methods: post, path: "/payments/webhook", public: true, signed: true, webhook: true,
			handle: a.receiveWebhook,
		},
		{
			methods: post, path: session, public: true, fields: []string{"token", "guest"},
			handle: a.createSession,
		},
		{methods: remove, path: session, public: true, handle: a.deleteSession},
	}, callableBy(isBuyer, []route{
		{methods: post, path: room, fields: append(ticket, "code"), handle: a.joinRoom},
		{methods: read, path: room + "/me", fields: ticket, handle: a.withRoom(a.myPlace)},
		{methods: remove, path: room + "/me", handle: a.withRoom(a.leaveRoom)},
		{methods: stream, path: room + "/me/events", fields: ticket, handle: a.placeEvents},
		{
			methods: post + " " + http.MethodGet, path: pathRoute, fields: append(goods, "code"),
			extraTime: maxWait, unlimited: true, countErrors: true,
			precheck: a.cachedError, handle: a.issuePath,
		},
		{
			methods: post, path: purchaseRoute, fields: append(goods, "decrStock"),
			countErrors: true, precheck: a.soldOut, handle: a.decrStock,
		},
		{methods: read, path: "/orders", fields: page, handle: a.myOrders},
		{methods: read, path: myOrder, handle: a.withOrder(a.Orders.Find)},
		{methods: stream, path: myOrder + "/events", handle: a.orderEvents},
		{methods: post, path: myOrder + "/pay", handle: a.withOrder(a.Payments.Pay)},
		{methods: post, path: myOrder + "/cancel", handle: a.withOrder(a.Payments.Cancel)},
		{methods: put, path: myOrder + "/shipping", fields: ofAddress, handle: a.setAddress},
	}), callableBy(isSeller, []route{
		{
			methods: post, path: sales, scope: apikey.SalesWrite, fields: append(ofSale, "stock"),
			handle: a.createSale,
		},
		{
			methods: read, path: sales, scope: apikey.SalesRead, fields: page,
			handle: a.listMerchantSales,
		},
		{methods: read, path: sale, scope: apikey.SalesRead, handle: a.withSale(a.Sales.Get)},
		{
			methods: patch, path: sale, scope: apikey.SalesWrite,
			fields: append(ofSale, "stockDelta"), handle: a.changeSale,
		},
		{methods: remove, path: sale, scope: apikey.SalesWrite, handle: a.deleteSale},
		{
			methods: read, path: sale + "/audit", scope: apikey.SalesRead, fields: page,
			handle: a.auditOfSale,
		},
		{
			methods: read, path: "/admin/audit", scope: apikey.SalesRead,
			fields: append(page, "goodsId", "action"), handle: a.auditTrail,
		},
		{
			methods: post, path: sale + "/expose", scope: apikey.SalesWrite, extraTime: exposeTime,
			handle: a.withSale(a.Sales.Expose),
		},
		{
			methods: post, path: sale + "/close", scope: apikey.SalesWrite, extraTime: exposeTime,
			handle: a.withSale(a.Sales.Close),
		},
		{methods: read, path: sale + "/ledger", scope: apikey.SalesRead, handle: a.saleLedger},
		{
			methods: read, path: sale + "/figures", scope: apikey.SalesRead,
			handle: a.saleStatistics,
		},
		{methods: stream, path: sale + "/events", scope: apikey.SalesRead, handle: a.saleEvents},
		{
			methods: read, path: sale + "/orders", scope: apikey.OrdersRead,
			fields: append(page, "status", "format"), handle: a.ordersOfSale,
		},
		{
			methods: read, path: "/admin/orders", scope: apikey.OrdersRead, fields: []string{"orderSn"},
			handle: a.findManagedOrder,
		},
		{
			methods: post, path: managedOrder + "/cancel", scope: apikey.OrdersWrite,
			handle: a.withManagedOrder(a.Payments.CancelForMerchant),
		},
		{
			methods: post, path: managedOrder + "/refund", scope: apikey.OrdersWrite,
			handle: a.withManagedOrder(a.Payments.Refund),
		},
		{
			methods: post, path: managedOrder + "/ship", scope: apikey.OrdersWrite,
			fields: []string{"carrier", "trackingNumber"}, handle: a.shipOrder,
		},
		{
			methods: post, path: managedOrder + "/reveal", scope: apikey.OrdersWrite,
			handle: a.revealOrder,
		},
		{
			methods: read, path: "/admin/events", scope: apikey.OrdersRead,
			fields: []string{"after", "limit"},
			handle: a.listEvents,
		},
		{
			methods: post, path: webhooks, scope: apikey.WebhooksWrite, fields: ofWebhook, lists: listed,
			handle: a.createWebhook,
		},
		{
			methods: read, path: webhooks, scope: apikey.WebhooksWrite, fields: page,
			handle: a.listWebhooks,
		},
		{
			methods: read, path: webhooks + "/:id", scope: apikey.WebhooksWrite,
			handle: a.showWebhook,
		},
		{
			methods: patch, path: webhooks + "/:id", scope: apikey.WebhooksWrite,
			fields: append(ofWebhook, "rotateSecret"),
			lists:  listed, handle: a.changeWebhook,
		},
		{
			methods: remove, path: webhooks + "/:id", scope: apikey.WebhooksWrite,
			handle: a.deleteWebhook,
		},
		{
			methods: read, path: webhooks + "/:id/deliveries", scope: apikey.WebhooksWrite,
			fields: append(page, "state"),
			handle: a.listDeliveries,
		},
		{
			methods: post, path: webhooks + "/:id/deliveries/:deliveryId/retry", scope: apikey.WebhooksWrite,
			handle: a.retryDelivery,
		},
		{
			methods: post, path: apiKeys, fields: []string{"name", "scopes", "merchantId"},
			lists: []string{"scopes"}, handle: a.createAPIKey,
		},
		{methods: read, path: apiKeys, fields: append(page, "merchantId"), handle: a.listAPIKeys},
		{methods: remove, path: apiKeys + "/:id", handle: a.revokeAPIKey},
	}), callableBy(isOperator, []route{
		{methods: read, path: "/admin/rebuilds", fields: page, handle: a.listRebuilds},
		{
			methods: read, path: "/admin/limiters", unlimited: true, fields: page,
			handle: a.listLimiters,
		},
		{methods: read, path: limiter, unlimited: true, handle: a.getLimiter},
		{
			methods: put + " " + patch, path: limiter, unlimited: true, fields: ofLimiter,
			handle: a.setLimiter,
		},
		{methods: remove, path: limiter, unlimited: true, handle: a.deleteLimiter},
		{methods: read, path: deadLetters, fields: page, handle: a.listDeadLetters},
		{methods: post, path: deadLetters + "/:id/requeue", handle: a.requeueDeadLetter},
		{methods: remove, path: deadLetters + "/:id", handle: a.discardDeadLetter},
		{methods: read, path: refunds, fields: page, handle: a.listRefunds},
		{methods: post, path: refunds + "/:paymentId/retry", handle: a.retryRefund},
		{
			methods: post, path: refunds + "/:paymentId/settle", fields: []string{"note"},
			handle: a.settleRefund,
		},
	}))
}
