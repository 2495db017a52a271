package app

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"flashsale.dev/seckill/internal/apikey"
	"flashsale.dev/seckill/internal/auth"
	"flashsale.dev/seckill/internal/config"
	"flashsale.dev/seckill/internal/event"
	"flashsale.dev/seckill/internal/httpapi"
	"flashsale.dev/seckill/internal/httpapi/web"
	"flashsale.dev/seckill/internal/order/query"
	"flashsale.dev/seckill/internal/order/shipping"
	"flashsale.dev/seckill/internal/paymentprovider"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/webhook"
)

// rememberedTokens bounds the cache of verified tokens, of about 300 bytes each. It holds the
// buyers of the last seconds of a large sale. Verifying a token again takes microseconds.
const rememberedTokens = 40_000

// API holds the HTTP API of one node: its handler, and the parts that need a worker or a shutdown.
type API struct {
	Handler  http.Handler
	Health   *Health
	Tokens   *auth.Tokens
	workers  []Worker
	limits   *Limits
	notifier *query.Notifier
}

// APISettings configure the API beyond the services' settings.
type APISettings struct {
	Config         config.Config
	Recorder       httpapi.Recorder // may be nil
	CountFetch     func(ok bool)    // counts fetches of the issuer's document and keys; may be nil
	CountLimit     LimitCounter     // may be nil
	Trace          httpapi.Trace    // may be nil
	Guests         []seckill.Actor  // may sign in without a password; for trials
	GuestsAnywhere bool             // also from other machines
}

// NewAPI wires a node's API. Errors name the invalid setting.
func NewAPI(p Parts, s Settings, a APISettings) (*API, error) {
	cfg := a.Config
	issuer, err := newIssuer(cfg, a.CountFetch, p.Log)
	if err != nil {
		return nil, err
	}
	tokens, err := auth.NewTokens(auth.Options{
		Secrets: cfg.Auth.SessionKeys(), Issuer: issuer, CacheSize: rememberedTokens, Now: time.Now,
	})
	if err != nil {
		return nil, err
	}
	phones, err := s.phones()
	if err != nil {
		return nil, err
	}
	callbacks, err := newCallbacks(cfg.Auth.PaymentSecret)
	if err != nil {
		return nil, err
	}
	limits, err := NewLimits(cfg.Limiter.File, 0, p.Redis, a.CountLimit, p.Log)
	if err != nil {
		return nil, err
	}
	site, err := newSite(cfg.HTTP.BrandName, cfg.HTTP.BrandLogo, s.Currency)
	if err != nil {
		return nil, err
	}
	keys := apikey.NewVerifier(p.Store, time.Now, p.Log)
	notifier := query.NewNotifier(p.Store, p.RedisStore, p.Log)
	services, health := NewServices(p, s), NewHealth(p)
	webhooks, _ := p.Provider.(httpapi.Webhooks) // nil: the provider sends none
	handler := httpapi.New(httpapi.Deps{
		Endpoints: &webhook.Service{
			Store: p.Store, Secrets: auth.WebhookSecrets{Keys: phones}, Allow: s.WebhookAllow,
			Log: p.Log,
		},
		Events: &event.Feed{Store: p.Store, Currency: site.Currency()},
		Sales:  services.Sales, Statistics: services.Statistics, DeadLetters: services.DeadLetters,
		ErrorCounts: services.Counters, Catalog: services.Catalog, Rooms: services.Rooms,
		Codes:     services.Codes,
		Purchases: services.Purchases,
		Orders:    services.Orders, Notifier: notifier,
		Limiter:      &httpapi.RuleLimiter{Book: limits.Book, Gate: limits.Gate},
		LimiterAdmin: limits.Admin(saleRates(services.Catalog), auditLimiters(p.Store, p.Log)),
		Payments:     services.Payments,
		Shipping: &shipping.Service{
			Orders: services.Orders, Store: p.Store, Sealer: auth.Addresses{Keys: phones},
		},
		APIKeys: &apikey.Service{Store: p.Store}, KeyVerifier: keys,
		Callbacks: callbacks, Webhooks: webhooks, Phones: phones, Site: site, Tokens: tokens,
		Ready: health.Ready, Recorder: a.Recorder, Trace: a.Trace, Log: p.Log,
		TrustedProxies: cfg.HTTP.TrustedProxies, CORSOrigins: cfg.HTTP.CORSOrigins,
		Guests: a.Guests, GuestsAnywhere: a.GuestsAnywhere,
		Issuer: issuer, IssuerSession: cfg.OIDC.Session, PublicURL: cfg.Payment.PublicURL,
	})
	workers := append([]Worker{limits, notifier, services.Counters, keys}, p.renewers()...)
	if issuer != nil {
		workers = append(workers, issuer)
	}
	return &API{
		Handler: handler, Health: health, Tokens: tokens, workers: workers,
		limits: limits, notifier: notifier,
	}, nil
}

// newIssuer returns the issuer of the settings, nil if they name none. It sends no request: the
// issuer's worker discovers it later, so an API starts while the issuer is down.
func newIssuer(
	cfg config.Config, countFetch func(ok bool), log *slog.Logger,
) (*auth.Issuer, error) {
	if cfg.OIDC.Issuer == "" {
		return nil, nil // nil makes the API accept its own tokens only
	}
	options := auth.IssuerOptions{
		URL: cfg.OIDC.Issuer, Audience: cfg.OIDC.Audience, RoleClaim: cfg.OIDC.RoleClaim,
		ClientID: cfg.OIDC.ClientID, ClientSecret: cfg.OIDC.ClientSecret.Reveal(),
		Client: &http.Client{}, Now: time.Now, Log: log, CountFetch: countFetch,
	}
	if public := strings.TrimSuffix(cfg.Payment.PublicURL, "/"); public != "" {
		options.RedirectURL = public + httpapi.SignInCallback
	}
	issuer, err := auth.NewIssuer(options)
	if err != nil {
		return nil, fmt.Errorf("SECKILL_OIDC_ISSUER: %w", err)
	}
	return issuer, nil
}

// newSite returns the pages for buyers, merchants and operators.
func newSite(brandName, brandLogo, currency string) (*web.Site, error) {
	brand, err := web.NewBrand(brandName, brandLogo)
	if err != nil {
		return nil, err
	}
	site, err := web.New(currency, brand)
	if err != nil {
		return nil, fmt.Errorf("pages: %w", err)
	}
	return site, nil
}

// newCallbacks returns what verifies the payment provider's callbacks; nil without a secret.
func newCallbacks(secret config.Secret) (*paymentprovider.Signer, error) {
	if secret == "" {
		return nil, nil // nil makes the API refuse callbacks
	}
	return paymentprovider.NewSigner([]byte(secret.Reveal()), time.Now)
}

// Workers returns the workers that the API needs beside its server.
func (a *API) Workers() []Worker { return a.workers }

// Server makes the API's server. Its shutdown closes the event streams, which may stay open for
// half an hour. It also answers the buyers that wait for a permit, for up to a minute.
func (a *API) Server(addr string, log *slog.Logger) *http.Server {
	s := httpapi.Server(a.Handler, addr, log)
	s.RegisterOnShutdown(a.notifier.Close)
	s.RegisterOnShutdown(a.limits.Gate.Drain)
	return s
}
