package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/gin-gonic/gin"

	"flashsale.dev/seckill/internal/auth"
	"flashsale.dev/seckill/internal/httpapi/web"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/inventory"
	"flashsale.dev/seckill/internal/order/payment"
	"flashsale.dev/seckill/internal/order/purchase"
	"flashsale.dev/seckill/internal/order/stats"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/catalog"
)

// SaleBook is what merchants write and read of sales.
// Each judges whose sale it is, after whether there is one: NOT_FOUND before FORBIDDEN.
type SaleBook interface {
	// Create with a key that came before gives the first sale.
	Create(ctx context.Context, by seckill.Actor, n seckill.NewSale, once seckill.IdempotencyKey) (seckill.Sale, error)
	Get(ctx context.Context, by seckill.Actor, goodsID int64) (seckill.Sale, error)
	// List gives the actor's own sales (an operator's are all), newest first, below a goods id (0: from the top),
	// at most limit of them.
	List(ctx context.Context, by seckill.Actor, below int64, limit int) ([]seckill.Sale, error)
}

// SaleLifecycle moves a sale on and accounts for it.
type SaleLifecycle interface {
	Expose(ctx context.Context, by seckill.Actor, goodsID int64) (seckill.Sale, error)
	Close(ctx context.Context, by seckill.Actor, goodsID int64) (seckill.Sale, error)
	Ledger(ctx context.Context, by seckill.Actor, goodsID int64) (seckill.Ledger, error)
	// Audit gives the changes of a sale, newest first, below an id ("": from the top), at most limit of them.
	Audit(ctx context.Context, by seckill.Actor, goodsID int64, before string, limit int) ([]seckill.AuditEntry, error)
}

// Changes changes sales, also while they sell; *inventory.SaleService is one.
type Changes interface {
	// Change with a key that came before gives the first answer.
	Change(ctx context.Context, by seckill.Actor, goodsID int64, c seckill.Change, once seckill.IdempotencyKey) (seckill.Sale, error)
	Delete(ctx context.Context, by seckill.Actor, goodsID int64, once seckill.IdempotencyKey) error
}

// Sales is all that merchants ask; *inventory.SaleService is one.
type Sales interface {
	SaleBook
	SaleLifecycle
}

// Catalog is what everybody may see of exposed sales.
type Catalog interface {
	// Sales gives exposed sales, newest first, below a goods id (0: from the top), at most limit of them.
	Sales(ctx context.Context, below int64, limit int) ([]seckill.View, error)
	Sale(ctx context.Context, goodsID int64) (seckill.View, error)
}

// Admission lets buyers in.
type Admission interface {
	// KnownRefusal gives the refusal that Admit would give without asking anybody, or nil where it would have to ask.
	KnownRefusal(goodsID int64) error
	// Admit gives the view of a sale that takes buyers now, else its refusal:
	// NOT_FOUND, NOT_STARTED, ENDED, SOLD_OUT or UNAVAILABLE.
	Admit(ctx context.Context, goodsID int64) (seckill.View, error)
	// IssuePath makes a random path for one buyer and says until when it is good.
	IssuePath(ctx context.Context, v seckill.View, buyerID int64) (path string, expiresAt time.Time, err error)
}

// SaleReader is all that buyers ask before they buy; *catalog.Catalog is one.
type SaleReader interface {
	Catalog
	Admission
}

// PathLimiter stands between Admit and IssuePath. It waits where it must, and refuses with RATE_LIMITED.
type PathLimiter interface {
	LimitPath(ctx context.Context, v seckill.View, by seckill.Actor) error
}

// PurchaseService takes purchases; *purchase.Service is one.
type PurchaseService interface {
	// Place gives the order number once the order is queued; the same path gives the same number.
	Place(ctx context.Context, p purchase.Request) (orderSn string, err error)
}

// OrderQuery is what is read of orders. Lists are newest first, of numbers below before ("": from the top), at most limit
// of them.
type OrderQuery interface {
	Find(ctx context.Context, by seckill.Actor, orderSn string) (order.Order, error)
	Mine(ctx context.Context, by seckill.Actor, before string, limit int) ([]order.Order, error)
	// OfGoods gives a sale's orders to who may manage it; status "" is all.
	OfGoods(ctx context.Context, by seckill.Actor, goodsID int64, status order.Status, before string, limit int) ([]order.Order, error)
}

// Cashier ends orders one way or the other, and gives the same state when asked again; *payment.Service is one.
type Cashier interface {
	Pay(ctx context.Context, by seckill.Actor, orderSn string) (order.Order, error)
	Cancel(ctx context.Context, by seckill.Actor, orderSn string) (order.Order, error)
}

// Payments takes the payment provider's word for what it was paid; *payment.Service is one.
type Payments interface {
	Receive(ctx context.Context, paymentID, orderSn string, amount int64) (order.Receipt, error)
}

// CallbackVerifier tells whether a callback is the provider's; its refusal is UNAUTHENTICATED. *paymentprovider.Signer is one.
type CallbackVerifier interface {
	Verify(timestamp, signature string, body []byte) error
}

// PhoneCipher seals phone numbers that are to be kept and opens those that are to be shown; *auth.Phones is one.
type PhoneCipher interface {
	Seal(buyerID int64, phone string) string
	Open(buyerID int64, kept string) (string, error)
}

// Tokens reads bearer tokens; its refusal is UNAUTHENTICATED.
type Tokens interface {
	Verify(token string) (seckill.Actor, error)
}

// Health tells whether this node should get requests, and how each part behind it is.
type Health interface {
	Ready(ctx context.Context) (ready bool, parts map[string]string)
}

// RefusalCounter counts what buyers of a goods are refused; *stats.Counters is one.
type RefusalCounter interface {
	Refused(goodsID int64, reason seckill.Reason)
}

// Metrics hears of every answer.
type Metrics interface {
	// Route gives what hears of the answers of one route, a pattern ("other" for unknown ones): the answer's reason and its
	// time. It is asked once for each, so that nothing needs to be looked up while buyers rush.
	Route(pattern string) func(reason string, took time.Duration)
}

// Tracer follows requests, a few of many.
type Tracer interface {
	// Request begins to follow a request to a route, if it is to be followed. The context is for all that is done for it, and
	// end is told how it was answered.
	Request(ctx context.Context, r *http.Request, route string) (traced context.Context, end func(status int, reason string))
}

// The services that are ready-made.
var (
	_ Sales           = (*inventory.SaleService)(nil)
	_ SaleReader      = (*catalog.Catalog)(nil)
	_ PurchaseService = (*purchase.Service)(nil)
	_ Cashier         = (*payment.Service)(nil)
	_ Changes         = (*inventory.SaleService)(nil)
	_ RefusalCounter  = (*stats.Counters)(nil)

	_ Payments    = (*payment.Service)(nil)
	_ PhoneCipher = (*auth.Phones)(nil)
)

// Deps are what the API stands on. All are needed.
type Deps struct {
	Sales       Sales
	Reader      SaleReader
	PathLimiter PathLimiter
	// RouteLimiter and Limiters may be nil: no route but /randomPath is limited then, or operators can't see the limits.
	RouteLimiter RouteLimiter
	LimiterAdmin LimiterAdmin
	Purchases    PurchaseService
	Orders       OrderQuery
	Cashier      Cashier
	Payments     Payments
	// CallbackVerifier may be nil: there is no secret, and callbacks of payments are refused.
	Callbacks CallbackVerifier
	// PhoneCipher may be nil: numbers are kept as they come then.
	Phones     PhoneCipher
	Changes    Changes
	Statistics Statistics
	// DeadLetters may be nil: operators can't resolve dead letters then.
	DeadLetters DeadLetters
	// RefusalCounter may be nil: refusals to buyers are not counted then.
	Refusals RefusalCounter
	// Notifier may be nil: there are no event streams then.
	Notifier Notifier
	// Sessions and Site may be nil: browsers can't sign in then, or there are no pages.
	Sessions Sessions
	Site     *web.Site
	Tokens   Tokens
	Health   Health
	// Metrics may be nil: nobody hears.
	Metrics Metrics
	// Tracer may be nil: no request is followed then.
	Tracer Tracer
	Log    *slog.Logger
}

// Options are what may be set; the zero value of each is a sound default.
type Options struct {
	TrustedProxies []netip.Prefix   // whose X-Forwarded-For is believed; none
	Timeout        time.Duration    // how long a call may take, waits for a permit and exposing aside; 5 s
	Now            func() time.Time // time.Now
	Guests         []seckill.Actor  // whom the sign-in page lets in with one click; none but where a shop is only tried
}

type api struct {
	Deps
	now         func() time.Time
	timeout     time.Duration
	logThrottle throttle
	catalog     *catalog.ListCache
	streams     streams
	reporters   map[string]func(reason string, took time.Duration) // by route; read only once the API answers
	gallery     gallery
	pulse       pulse
	proxies     []netip.Prefix
	guests      []seckill.Actor
	origins     *http.CrossOriginProtection
}

// New builds the handler of every route.
func New(deps Deps, opts Options) http.Handler {
	a := &api{
		Deps: deps, now: opts.Now, timeout: opts.Timeout, proxies: opts.TrustedProxies, guests: opts.Guests,
		origins: http.NewCrossOriginProtection(),
	}
	if a.now == nil {
		a.now = time.Now
	}
	if a.timeout <= 0 {
		a.timeout = 5 * time.Second
	}
	a.catalog = catalog.NewListCache(deps.Reader, a.now)
	e := engine(opts.TrustedProxies)
	e.Use(a.requestMiddleware)
	a.reporters = map[string]func(string, time.Duration){"": hearer(deps.Metrics, "other")}
	for _, r := range append(a.routes(), a.pages()...) {
		a.reporters[r.path] = hearer(deps.Metrics, r.path)
		for _, method := range r.methods {
			e.Handle(method, r.path, a.handler(r))
		}
	}
	e.NoRoute(a.noRoute)
	e.NoMethod(a.noMethod)
	return e
}

// hearer is what hears of a route's answers; nobody where there are no metrics.
func hearer(m Metrics, route string) func(reason string, took time.Duration) {
	if m == nil {
		return func(string, time.Duration) {}
	}
	return m.Route(route)
}

// engine is a gin that redirects nobody and believes nobody it was not told to.
func engine(trusted []netip.Prefix) *gin.Engine {
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
	_ = e.SetTrustedProxies(cidrs) // a netip.Prefix always reads as one
	return e
}
