package app

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"flashsale.dev/seckill/internal/auth"
	"flashsale.dev/seckill/internal/config"
	"flashsale.dev/seckill/internal/httpapi"
	"flashsale.dev/seckill/internal/httpapi/web"
	"flashsale.dev/seckill/internal/order/query"
	"flashsale.dev/seckill/internal/order/stats"
	"flashsale.dev/seckill/internal/paymentprovider"
	"flashsale.dev/seckill/internal/ratelimit/gate"
	"flashsale.dev/seckill/internal/seckill"
)

// rememberedTokens is how many verified tokens a node remembers, some 300 bytes each: those who asked in the last seconds of
// the wildest rush. Who is forgotten is verified anew, for some microseconds.
const rememberedTokens = 40_000

// API is one node's HTTP API.
type API struct {
	Handler http.Handler
	Health  *Health
	Tokens  *auth.Tokens
	Limits  *Limits
	Watch   *query.Notifier
	Tally   *stats.Counters
}

// APISettings are what the API may be told besides the services' settings.
type APISettings struct {
	JWTSecret      []byte
	PaymentSecret  []byte          // nil: callbacks of payments are refused
	PhoneKeys      []auth.PhoneKey // the first seals; behind them the one that is derived from the order secret
	RulesFile      string          // "": the default rules
	TrustedProxies []netip.Prefix
	Metrics        Metrics
	Tracer         httpapi.Tracer  // may be nil
	Currency       string          // of the prices on the pages, ISO 4217; "": the default's
	Guests         []seckill.Actor // whom the sign-in page lets in with one click: for a shop that is only tried
}

// defaultCurrency is the one that prices are shown in where nothing else is said.
const defaultCurrency = "CNY"

// Metrics hears of what a node does.
type Metrics interface {
	httpapi.Metrics
	gate.Metrics
}

// NoMetrics hears nothing.
type NoMetrics struct{}

// Route gives what hears nothing.
func (NoMetrics) Route(string) func(string, time.Duration) { return func(string, time.Duration) {} }

// Count does nothing.
func (NoMetrics) Count(string, gate.Event) {}

// NewAPI wires a node's API.
func NewAPI(p Parts, s Settings, a APISettings) (*API, error) {
	tokens, err := auth.New(a.JWTSecret, rememberedTokens, time.Now)
	if err != nil {
		return nil, err
	}
	phones, err := auth.NewPhones(append(slices.Clone(a.PhoneKeys), auth.DerivedPhoneKey(s.OrderSecret))...)
	if err != nil {
		return nil, err
	}
	callbacks, err := newCallbacks(a.PaymentSecret)
	if err != nil {
		return nil, err
	}
	limits, err := NewLimits(a.RulesFile, p.Redis, a.Metrics, p.Log)
	if err != nil {
		return nil, fmt.Errorf("rate limits: %w", err)
	}
	site, err := web.New(cmp.Or(a.Currency, defaultCurrency))
	if err != nil {
		return nil, fmt.Errorf("pages: %w", err)
	}
	watch := query.NewNotifier(p.Store, p.Shelf, p.Log)
	services, health := NewServices(p, s), NewHealth(p)
	guard := httpapi.NewRuleLimiter(limits.Book, limits.Gate)
	handler := httpapi.New(httpapi.Deps{
		Sales: services.Sales, Changes: services.Changes, Statistics: services.Figures, DeadLetters: services.Letters, Refusals: services.Tally,
		Reader: services.Shop, Purchases: services.Desk, Orders: services.Finder, Notifier: watch,
		PathLimiter: guard, RouteLimiter: guard, LimiterAdmin: limits.Admin(saleRates(services.Shop)),
		Payments: services.Cashier, Callbacks: callbacks, Phones: phones, Sessions: tokens, Site: site,
		Tokens: tokens, Health: health, Metrics: a.Metrics, Tracer: a.Tracer, Log: p.Log,
	}, httpapi.Options{TrustedProxies: a.TrustedProxies, Guests: a.Guests})
	return &API{Handler: handler, Health: health, Tokens: tokens, Limits: limits, Watch: watch, Tally: services.Tally}, nil
}

// newCallbacks is nil where there is no secret.
func newCallbacks(secret []byte) (httpapi.CallbackVerifier, error) {
	if len(secret) == 0 {
		return nil, nil //nolint:nilnil // the API refuses callbacks then
	}
	return paymentprovider.NewSigner(secret, time.Now)
}

// APISettingsOf takes the API's settings out of a program's.
func APISettingsOf(cfg config.Config, metrics Metrics) (APISettings, error) {
	keys, err := cfg.Auth.Phones()
	return APISettings{
		JWTSecret: []byte(cfg.Auth.JWTSecret.Reveal()), PaymentSecret: []byte(cfg.Auth.PaymentSecret.Reveal()), PhoneKeys: keys,
		RulesFile: cfg.Limiter.File, TrustedProxies: cfg.HTTP.TrustedProxies, Metrics: metrics, Currency: cfg.HTTP.Currency,
	}, err
}

// Workers are what the API needs running beside its server.
func (a *API) Workers() []Worker { return []Worker{a.Limits, a.Watch, a.Tally, Memory{}} }

// Server is the API's server. Told to stop, it sends its event streams home first.
func (a *API) Server(addr string, log *slog.Logger) *http.Server {
	s := httpapi.Server(a.Handler, addr, log)
	s.RegisterOnShutdown(a.Watch.Close)
	return s
}
