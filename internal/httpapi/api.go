package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"
	"golang.org/x/sync/semaphore"

	"flashsale.dev/seckill/internal/apikey"
	"flashsale.dev/seckill/internal/auth"
	"flashsale.dev/seckill/internal/event"
	"flashsale.dev/seckill/internal/httpapi/web"
	"flashsale.dev/seckill/internal/order/deadletter"
	"flashsale.dev/seckill/internal/order/inventory"
	"flashsale.dev/seckill/internal/order/payment"
	"flashsale.dev/seckill/internal/order/purchase"
	"flashsale.dev/seckill/internal/order/query"
	"flashsale.dev/seckill/internal/order/shipping"
	"flashsale.dev/seckill/internal/order/stats"
	"flashsale.dev/seckill/internal/paymentprovider"
	"flashsale.dev/seckill/internal/ratelimit/rules"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/accesscode"
	"flashsale.dev/seckill/internal/seckill/catalog"
	"flashsale.dev/seckill/internal/ttlcache"
	"flashsale.dev/seckill/internal/waitingroom/admission"
	"flashsale.dev/seckill/internal/webhook"
)

// Deps are the services behind the API, and its settings. All services are required unless a
// comment allows nil.
type Deps struct {
	Sales        *inventory.SaleService
	Catalog      *catalog.Catalog
	Rooms        *admission.Service
	Codes        *accesscode.Service
	Limiter      *RuleLimiter
	LimiterAdmin *rules.Admin
	Purchases    *purchase.Service
	Orders       *query.Service
	Payments     *payment.Service
	Shipping     *shipping.Service
	Callbacks    *paymentprovider.Signer // nil: payment callbacks are refused
	Webhooks     Webhooks                // nil: the provider sends none, and they are refused
	Phones       *auth.Phones
	Statistics   *stats.Service
	DeadLetters  *deadletter.Service
	Events       *event.Feed
	Endpoints    *webhook.Service
	ErrorCounts  *stats.Counters
	Notifier     *query.Notifier
	APIKeys      *apikey.Service
	KeyVerifier  *apikey.Verifier
	Site         *web.Site
	Tokens       *auth.Tokens
	Ready        Readiness
	Recorder     Recorder // nil: nothing is recorded
	Trace        Trace    // nil: no request is traced
	Log          *slog.Logger
	// CORSOrigins are the origins of other sites whose pages may call the API with a bearer token.
	CORSOrigins []string
	// PublicURL is the address at which buyers reach the pages; "": that of the request.
	PublicURL string
	// TrustedProxies are the peers whose X-Forwarded-For the API uses.
	TrustedProxies []netip.Prefix
	// Guests are the actors that the sign-in page offers without a token; only standalone has any.
	Guests []seckill.Actor
	// GuestsAnywhere makes guests of all callers, not only of those on this machine.
	GuestsAnywhere bool
	// Issuer signs the users of the pages in. If it is nil or does not, they sign in with a token.
	Issuer *auth.Issuer
	// IssuerSession is how long a sign-in at the issuer lasts.
	IssuerSession time.Duration
}

// Recorder returns the function that records the responses of one route, by reason and duration.
// The route is a pattern, or "other" for unknown paths. New calls it once per route, so that
// recording needs no lookup.
type Recorder func(route string) func(reason string, took time.Duration)

// Trace starts a trace where the request is sampled. The handler runs with the returned context;
// end receives the response's status and reason.
type Trace func(
	ctx context.Context, r *http.Request, route string,
) (traced context.Context, end func(status int, reason string))

// Readiness reports whether a node should receive requests, and the state of each dependency by
// name: "ok", or its problem.
type Readiness func(ctx context.Context) (ready bool, parts map[string]string)

// api holds what the handlers share.
type api struct {
	Deps
	throttles       sync.Map    // of warnings: message -> *throttle
	unknownProxy    atomic.Bool // warnOfUnknownProxy has nothing more to warn of
	list            *catalog.ListCache
	streams         streams
	exports         *semaphore.Weighted            // one serves the page of an export at a time
	snapshots       *ttlcache.Cache[int64, string] // events by goods id
	currencies      *ttlcache.Cache[int64, string] // of sales with orders, by goods id
	purchaseLatency *latencyWindow
	origins         *http.CrossOriginProtection
	// reporters record the responses by route. They are complete before the first request.
	reporters map[string]func(reason string, took time.Duration)
}

const (
	currencyTTL     = time.Hour
	currencyTimeout = time.Second
	maxCurrencies   = 10_000
)

// New returns the handler of all routes.
func New(deps Deps) http.Handler {
	a := newAPI(deps)
	a.list = catalog.NewListCache(deps.Catalog.Sales, time.Now)
	a.warnOfUnmatchedRules()
	return allowOrigins(deps.CORSOrigins,
		a.engine(slices.Concat(a.probes(), a.routes(), a.pages())))
}

// Probes returns the handler of /livez and /readyz alone. Every program serves it on its operations
// address, so that an orchestrator probes all programs alike.
func Probes(ready Readiness, log *slog.Logger) http.Handler {
	a := newAPI(Deps{Ready: ready, Log: log})
	a.unknownProxy.Store(true) // probes have no limits by address
	return a.engine(a.probes())
}

func newAPI(deps Deps) *api {
	return &api{
		Deps: deps, streams: newStreams(debug.SetMemoryLimit(-1)),
		snapshots: ttlcache.New[int64, string](ttlcache.Options{
			TTL: snapshotTTL, MaxEntries: maxSnapshots, LoadTimeout: snapshotTimeout, Now: time.Now,
		}),
		currencies: ttlcache.New[int64, string](ttlcache.Options{
			TTL: currencyTTL, MaxEntries: maxCurrencies, LoadTimeout: currencyTimeout, Now: time.Now,
		}),
		exports: semaphore.NewWeighted(1),
		origins: http.NewCrossOriginProtection(), purchaseLatency: newLatencyWindow(),
		reporters: make(map[string]func(string, time.Duration)),
	}
}

// engine returns the router of the given routes.
func (a *api) engine(routes []route) http.Handler {
	e := newEngine(a.TrustedProxies)
	e.Use(a.requestMiddleware)
	a.addReporter("", "other") // gin has no pattern for unknown paths
	for _, r := range routes {
		a.addReporter(r.path, r.path)
		for method := range strings.FieldsSeq(r.methods) {
			e.Handle(method, r.path, a.handler(r))
		}
	}
	e.NoRoute(a.noRoute)
	e.NoMethod(a.noMethod)
	return e
}

// addReporter stores the metrics' function of a route, so that recording a response costs no
// look-up of labels. A route with several methods has one reporter.
func (a *api) addReporter(path, name string) {
	if a.Recorder != nil && a.reporters[path] == nil {
		a.reporters[path] = a.Recorder(name)
	}
}

// newEngine returns a gin engine that never redirects and trusts only the given proxies. A redirect
// of /sales/ to /sales would make a client send its token twice, and a POST would lose its body.
func newEngine(trusted []netip.Prefix) *gin.Engine {
	gin.SetMode(gin.ReleaseMode) // gin's debug mode prints to stdout
	e := gin.New()
	e.RedirectTrailingSlash = false
	e.RedirectFixedPath = false
	e.HandleMethodNotAllowed = true
	e.ContextWithFallback = false
	cidrs := make([]string, 0, len(trusted))
	for _, p := range trusted {
		cidrs = append(cidrs, p.String())
	}
	_ = e.SetTrustedProxies(cidrs)                  // a netip.Prefix always parses
	e.RemoteIPHeaders = []string{"X-Forwarded-For"} // gin would also believe X-Real-IP
	return e
}
