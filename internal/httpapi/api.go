package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"flashsale.dev/seckill/internal/auth"
	"flashsale.dev/seckill/internal/httpapi/web"
	"flashsale.dev/seckill/internal/order/query"
	"flashsale.dev/seckill/internal/order/stats"
	"flashsale.dev/seckill/internal/paymentprovider"
	"flashsale.dev/seckill/internal/ratelimit/rules"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/catalog"
	"flashsale.dev/seckill/internal/ttlcache"
)

// Deps are the services behind the API. All are required unless a comment allows nil.
type Deps struct {
	Sales  Sales
	Reader SaleReader
	// LimitPath limits random paths, between Admit and IssuePath. It waits for a permit if the
	// sale's rate allows a wait, and else refuses with RATE_LIMITED.
	LimitPath    func(ctx context.Context, v seckill.View, by seckill.Actor) error
	RouteLimiter *RuleLimiter // nil: only /randomPath is limited
	LimiterAdmin *rules.Admin // nil: no routes to read and change limits
	Purchases    PurchaseService
	Orders       OrderQuery
	Payments     PaymentService
	Callbacks    *paymentprovider.Signer // nil: payment callbacks are refused
	Phones       *auth.Phones            // nil: phone numbers are stored as they arrive
	Statistics   Statistics
	DeadLetters  DeadLetters     // nil: no routes for dead letters
	ErrorCounts  *stats.Counters // nil: errors are not counted
	Notifier     *query.Notifier // nil: no event streams of orders
	Sessions     *auth.Tokens    // nil: browsers cannot sign in
	Site         *web.Site       // nil: no pages
	Tokens       *auth.Tokens
	Health       Health
	Metrics      Metrics // nil: nothing is recorded
	Tracer       Tracer  // nil: no request is traced
	Log          *slog.Logger
}

// Options are settings; the zero value of each selects its default.
type Options struct {
	// TrustedProxies are the peers whose X-Forwarded-For the API uses. Default: none.
	TrustedProxies []netip.Prefix
	// Timeout limits a call, except for a route's extra time. Default: 5 s.
	Timeout time.Duration
	// Now is the clock. Default: time.Now.
	Now func() time.Time
	// Guests are the actors that the sign-in page offers without a token; only the demo has any.
	Guests []seckill.Actor
}

// api holds what the handlers share.
type api struct {
	Deps
	Options
	logThrottle     throttle
	catalog         *catalog.ListCache
	streams         streams
	snapshots       *ttlcache.Cache[int64, string] // events by goods id
	purchaseLatency *latencyWindow
	origins         *http.CrossOriginProtection
	// reporters record the responses by route. They are complete before the first request.
	reporters map[string]func(reason string, took time.Duration)
}

// New returns the handler of all routes.
func New(deps Deps, opts Options) http.Handler {
	a := newAPI(deps, opts)
	return a.engine(append(a.routes(), a.pages()...))
}

// Probes returns the handler of /livez and /readyz alone. Every program serves it on its operations
// address, so that an orchestrator probes all programs alike.
func Probes(health Health, log *slog.Logger) http.Handler {
	a := newAPI(Deps{Health: health, Log: log}, Options{})
	return a.engine(a.probes())
}

// newAPI fills in the defaults. Guests and proxies have none: only those that the caller names
// count.
func newAPI(deps Deps, opts Options) *api {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Timeout <= 0 {
		opts.Timeout = 5 * time.Second
	}
	return &api{
		Deps: deps, Options: opts,
		catalog: catalog.NewListCache(deps.Reader.Sales, opts.Now),
		snapshots: ttlcache.New[int64, string](ttlcache.Options{
			TTL: snapshotTTL, MaxEntries: maxSnapshots, LoadTimeout: snapshotTimeout, Now: opts.Now,
		}),
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
	if a.Metrics != nil && a.reporters[path] == nil {
		a.reporters[path] = a.Metrics.Route(name)
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
	_ = e.SetTrustedProxies(cidrs) // a netip.Prefix always parses
	return e
}
