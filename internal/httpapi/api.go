package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/gin-gonic/gin"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
)

// SaleBook is what merchants write and read of sales.
// Each judges whose sale it is, after whether there is one: NOT_FOUND before FORBIDDEN.
type SaleBook interface {
	// Create with a key that came before gives the first sale.
	Create(ctx context.Context, by seckill.Actor, n seckill.NewSale, once seckill.Once) (seckill.Sale, error)
	Get(ctx context.Context, by seckill.Actor, goodsID int64) (seckill.Sale, error)
	// List gives the actor's own sales (an operator's are all), newest first, below a goods id (0: from the top),
	// at most limit of them.
	List(ctx context.Context, by seckill.Actor, below int64, limit int) ([]seckill.Sale, error)
}

// SaleLife moves a sale on and accounts for it.
type SaleLife interface {
	Expose(ctx context.Context, by seckill.Actor, goodsID int64) (seckill.Sale, error)
	Close(ctx context.Context, by seckill.Actor, goodsID int64) (seckill.Sale, error)
	Ledger(ctx context.Context, by seckill.Actor, goodsID int64) (seckill.Ledger, error)
	// Audit gives the changes of a sale, newest first, below an id ("": from the top), at most limit of them.
	Audit(ctx context.Context, by seckill.Actor, goodsID int64, before string, limit int) ([]seckill.AuditEntry, error)
}

// Changes changes sales, also while they sell; *order.Stockroom is one.
type Changes interface {
	// Change with a key that came before gives the first answer.
	Change(ctx context.Context, by seckill.Actor, goodsID int64, c seckill.Change, once seckill.Once) (seckill.Sale, error)
	Delete(ctx context.Context, by seckill.Actor, goodsID int64) error
}

// Sales is all that merchants ask; *seckill.Sales is one.
type Sales interface {
	SaleBook
	SaleLife
}

// Window is what everybody may see of exposed sales.
type Window interface {
	// Sales gives exposed sales, newest first, below a goods id (0: from the top), at most limit of them.
	Sales(ctx context.Context, below int64, limit int) ([]seckill.View, error)
	Sale(ctx context.Context, goodsID int64) (seckill.View, error)
}

// Door lets buyers in.
type Door interface {
	// Refused gives the refusal that Admit would give without asking anybody, or nil where it would have to ask.
	Refused(goodsID int64) error
	// Admit gives the view of a sale that takes buyers now, else its refusal:
	// NOT_FOUND, NOT_STARTED, ENDED, SOLD_OUT or UNAVAILABLE.
	Admit(ctx context.Context, goodsID int64) (seckill.View, error)
	// IssuePath makes a random path for one buyer and says until when it is good.
	IssuePath(ctx context.Context, v seckill.View, buyerID int64) (path string, expiresAt time.Time, err error)
}

// Shop is all that buyers ask before they buy; *seckill.Shop is one.
type Shop interface {
	Window
	Door
}

// Limiter stands between Admit and IssuePath. It waits where it must, and refuses with RATE_LIMITED.
type Limiter interface {
	LimitPath(ctx context.Context, v seckill.View, by seckill.Actor) error
}

// Desk takes purchases; *order.Desk is one.
type Desk interface {
	// Place gives the order number once the order is queued; the same path gives the same number.
	Place(ctx context.Context, p order.Purchase) (orderSn string, err error)
}

// Orders is what is read of orders. Lists are newest first, of numbers below before ("": from the top), at most limit
// of them.
type Orders interface {
	Find(ctx context.Context, by seckill.Actor, orderSn string) (order.Order, error)
	Mine(ctx context.Context, by seckill.Actor, before string, limit int) ([]order.Order, error)
	// OfGoods gives a sale's orders to who may manage it; status "" is all.
	OfGoods(ctx context.Context, by seckill.Actor, goodsID int64, status order.Status, before string, limit int) ([]order.Order, error)
}

// Cashier ends orders one way or the other, and gives the same state when asked again; *order.Cashier is one.
type Cashier interface {
	Pay(ctx context.Context, by seckill.Actor, orderSn string) (order.Order, error)
	Cancel(ctx context.Context, by seckill.Actor, orderSn string) (order.Order, error)
}

// Tokens reads bearer tokens; its refusal is UNAUTHENTICATED.
type Tokens interface {
	Verify(token string) (seckill.Actor, error)
}

// Health tells whether this node should get requests, and how each part behind it is.
type Health interface {
	Ready(ctx context.Context) (ready bool, parts map[string]string)
}

// Metrics hears of every answer: its route as a pattern ("other" for unknown ones), its reason and its time.
type Metrics interface {
	Observe(route, reason string, took time.Duration)
}

// The services that are ready-made.
var (
	_ Sales   = (*seckill.Sales)(nil)
	_ Shop    = (*seckill.Shop)(nil)
	_ Desk    = (*order.Desk)(nil)
	_ Cashier = (*order.Cashier)(nil)
	_ Changes = (*order.Stockroom)(nil)
)

// Deps are what the API stands on. All are needed.
type Deps struct {
	Sales   Sales
	Shop    Shop
	Limiter Limiter
	// Guard and Limiters may be nil: no route but /randomPath is limited then, or operators can't see the limits.
	Guard    Guard
	Limiters Limiters
	Desk     Desk
	Orders   Orders
	Cashier  Cashier
	Changes  Changes
	Figures  Figures
	// Letters may be nil: operators can't resolve dead letters then.
	Letters Letters
	// Watch may be nil: there are no event streams then.
	Watch   Watch
	Tokens  Tokens
	Health  Health
	Metrics Metrics
	Log     *slog.Logger
}

// Options are what may be set; the zero value of each is a sound default.
type Options struct {
	TrustedProxies []netip.Prefix   // whose X-Forwarded-For is believed; none
	Timeout        time.Duration    // how long a call may take, waits for a permit and exposing aside; 5 s
	Now            func() time.Time // time.Now
}

type api struct {
	Deps
	now      func() time.Time
	timeout  time.Duration
	warnings throttle
	board    *seckill.Board
	streams  streams
}

// New builds the handler of every route.
func New(deps Deps, opts Options) http.Handler {
	a := &api{Deps: deps, now: opts.Now, timeout: opts.Timeout}
	if a.now == nil {
		a.now = time.Now
	}
	if a.timeout <= 0 {
		a.timeout = 5 * time.Second
	}
	a.board = seckill.NewBoard(deps.Shop, a.now)
	e := engine(opts.TrustedProxies)
	e.Use(a.frame)
	for _, r := range a.routes() {
		for _, method := range r.methods {
			e.Handle(method, r.path, a.serve(r))
		}
	}
	e.NoRoute(a.noRoute)
	e.NoMethod(a.noMethod)
	return e
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
