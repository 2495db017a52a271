package app

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"flashsale.dev/seckill/internal/auth"
	"flashsale.dev/seckill/internal/httpapi"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/ratelimit"
)

// rememberedTokens is how many verified tokens a node remembers, some 300 bytes each.
const rememberedTokens = 100_000

// API is one node's HTTP API.
type API struct {
	Handler http.Handler
	Health  *Health
	Tokens  *auth.Tokens
	Limits  *Limits
	Watch   *order.Watch
}

// APISettings are what the API may be told besides the services' settings.
type APISettings struct {
	JWTSecret      []byte
	RulesFile      string // "": the default rules
	TrustedProxies []netip.Prefix
	Metrics        Metrics
}

// Metrics hears of what a node does.
type Metrics interface {
	httpapi.Metrics
	ratelimit.Meter
}

// NoMetrics hears nothing.
type NoMetrics struct{}

// Observe does nothing.
func (NoMetrics) Observe(string, string, time.Duration) {}

// Count does nothing.
func (NoMetrics) Count(string, ratelimit.Event) {}

// NewAPI wires a node's API.
func NewAPI(p Parts, s Settings, a APISettings) (*API, error) {
	tokens, err := auth.New(a.JWTSecret, rememberedTokens, time.Now)
	if err != nil {
		return nil, err
	}
	limits, err := NewLimits(a.RulesFile, p.Redis, a.Metrics, p.Log)
	if err != nil {
		return nil, fmt.Errorf("rate limits: %w", err)
	}
	watch := order.NewWatch(p.Store, p.Log)
	services, health := NewServices(p, s), NewHealth(p)
	guard := httpapi.NewLimits(limits.Book, limits.Gate)
	handler := httpapi.New(httpapi.Deps{
		Sales: services.Sales, Changes: services.Changes, Figures: services.Figures, Letters: services.Letters,
		Shop: services.Shop, Desk: services.Desk, Orders: services.Finder, Cashier: services.Cashier, Watch: watch,
		Limiter: guard, Guard: guard, Limiters: limits.Admin.WithOwn(saleRates(services.Shop)),
		Tokens: tokens, Health: health, Metrics: a.Metrics, Log: p.Log,
	}, httpapi.Options{TrustedProxies: a.TrustedProxies})
	return &API{Handler: handler, Health: health, Tokens: tokens, Limits: limits, Watch: watch}, nil
}

// Workers are what the API needs running beside its server.
func (a *API) Workers() []Worker { return []Worker{a.Limits, a.Watch} }

// Server is the API's server. Told to stop, it sends its event streams home first.
func (a *API) Server(addr string, log *slog.Logger) *http.Server {
	s := httpapi.Server(a.Handler, addr, log)
	s.RegisterOnShutdown(a.Watch.End)
	return s
}
