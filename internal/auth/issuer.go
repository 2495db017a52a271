package auth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/golang-jwt/jwt/v5"
	"golang.org/x/oauth2"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/workers"
)

const (
	// clockLeeway is how far an issuer's clock may differ from ours.
	clockLeeway = time.Minute
	// issuerTimeout bounds one HTTP exchange with the issuer.
	issuerTimeout = 3 * time.Second
	// firstRetry and lastRetry are the shortest and the longest pause between two discoveries.
	firstRetry, lastRetry = time.Second, 30 * time.Second
	maxRedirects          = 10
)

// ErrIssuer reports settings of an issuer that can't work.
var ErrIssuer = errors.New("the OpenID Connect issuer's settings are not valid")

// IssuerOptions configure an Issuer. URL, Audience, Client, Now and Log are required.
type IssuerOptions struct {
	URL          string // the issuer's identifier, under which it is discovered
	Audience     string // access tokens must name it
	RoleClaim    string // name, or dotted path, of the claim with the role or a list of roles
	ClientID     string // the id of the pages' client; "": it is Audience
	ClientSecret string // the secret of the pages' client; "": the client is public
	// RedirectURL is the address to which the issuer returns a browser; without one the issuer only
	// verifies bearer tokens.
	RedirectURL string
	Client      *http.Client
	Now         func() time.Time
	Log         *slog.Logger
	CountFetch  func(ok bool) // counts fetches of the document and of the keys; may be nil
}

// Issuer verifies the tokens of an OpenID Connect provider, and signs the users of the pages in.
//
// Before Run has discovered the provider and fetched its keys, it refuses every token with
// UNAVAILABLE, because the token may be valid. It fetches the keys again every minute,
// and at most every 5 s for tokens with an unknown key. When the provider is down, the last keys
// keep verifying. It is safe for concurrent use.
type Issuer struct {
	opts      IssuerOptions
	host      string
	validator *jwt.Validator // checks the times with clockLeeway
	found     atomic.Pointer[discovered]
}

// discovered is what a discovery yields.
type discovered struct {
	keys   *issuerKeys
	access *oidc.IDTokenVerifier // verifies bearer tokens
	id     *oidc.IDTokenVerifier // verifies the ID tokens of sign-ins on the pages
	login  oauth2.Config
}

// count counts a discovery or a fetch of the keys.
func (o IssuerOptions) count(err error) {
	if o.CountFetch != nil {
		o.CountFetch(err == nil)
	}
}

// NewIssuer checks the options. Its error is ErrIssuer with the reason. The issuer and its
// endpoints must use https; plain http is accepted for loopback addresses only, for trials.
func NewIssuer(o IssuerOptions) (*Issuer, error) {
	if err := secureURL(o.URL); err != nil {
		return nil, fmt.Errorf("%w: issuer %q: %w", ErrIssuer, o.URL, err)
	}
	if o.Audience == "" {
		return nil, fmt.Errorf("%w: an audience is required", ErrIssuer)
	}
	if o.ClientID == "" {
		o.ClientID = o.Audience
	}
	u, _ := url.Parse(o.URL) // secureURL has parsed it
	client := *o.Client
	client.Timeout = issuerTimeout
	client.CheckRedirect = checkRedirect
	o.Client = &client
	return &Issuer{opts: o, host: u.Host, validator: jwt.NewValidator(
		jwt.WithExpirationRequired(), jwt.WithLeeway(clockLeeway), jwt.WithTimeFunc(o.Now),
	)}, nil
}

// secureURL refuses addresses at which a third party could replace keys on the way.
func secureURL(text string) error {
	u, err := url.Parse(text)
	if err != nil {
		return err
	}
	addr := net.ParseIP(u.Hostname())
	loopback := u.Hostname() == "localhost" || addr != nil && addr.IsLoopback()
	if u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || !loopback) {
		return errors.New("must be an https URL")
	}
	return nil
}

// checkRedirect follows redirects to secure addresses, at most as many as net/http does.
func checkRedirect(r *http.Request, via []*http.Request) error {
	if len(via) >= maxRedirects {
		return errors.New("too many redirects")
	}
	return secureURL(r.URL.String())
}

// SignsIn reports whether users may sign in on the pages. It is false without a redirect URL.
func (i *Issuer) SignsIn() bool { return i != nil && i.opts.RedirectURL != "" }

// Run discovers the provider, with pauses between attempts until it succeeds, and then keeps the
// keys current until ctx ends. It returns nil.
func (i *Issuer) Run(ctx context.Context) error {
	for pause := firstRetry; ; pause = min(2*pause, lastRetry) {
		err := i.discover(ctx)
		i.opts.count(err)
		if err == nil {
			i.opts.Log.Info("issuer is discovered", "host", i.host)
			break
		}
		if ctx.Err() == nil {
			i.opts.Log.Warn("issuer can't be discovered: its tokens get 503 until it answers; check "+
				"SECKILL_OIDC_ISSUER, and that this machine reaches the host",
				"host", i.host, "retry_in", pause, "err", err)
		}
		if !sleep(ctx, pause) {
			return nil
		}
	}
	for sleep(ctx, keysLifetime) {
		i.found.Load().keys.renew()
	}
	return nil
}

// sleep waits for d and returns true, or returns false as soon as ctx ends.
func sleep(ctx context.Context, d time.Duration) bool {
	workers.Sleep(ctx, d)
	return ctx.Err() == nil
}

// discover reads the provider's document and keys.
func (i *Issuer) discover(ctx context.Context) error {
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, i.opts.Client), i.opts.URL)
	if err != nil {
		return fmt.Errorf("discover: %w", err)
	}
	var document struct {
		Keys   string   `json:"jwks_uri"`
		Scopes []string `json:"scopes_supported"`
	}
	if err := provider.Claims(&document); err != nil {
		return fmt.Errorf("decode the discovery document: %w", err)
	}
	endpoint := provider.Endpoint()
	if i.opts.ClientSecret == "" { // otherwise the library first tries an empty password
		endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	addresses := map[string]string{"jwks_uri": document.Keys}
	if i.SignsIn() {
		addresses["authorization_endpoint"] = endpoint.AuthURL
		addresses["token_endpoint"] = endpoint.TokenURL
	}
	for name, at := range addresses {
		if err := secureURL(at); err != nil {
			return fmt.Errorf("%s %q: %w", name, at, err)
		}
	}
	scopes := []string{oidc.ScopeOpenID, "profile"}
	for _, optional := range []string{"phone", "email"} {
		// Some providers refuse a sign-in with a scope that they do not know.
		if slices.Contains(document.Scopes, optional) {
			scopes = append(scopes, optional)
		}
	}
	keys := &issuerKeys{
		url: document.Keys, client: i.opts.Client, now: i.opts.Now, log: i.opts.Log, host: i.host,
		count: i.opts.count,
	}
	if err := keys.fetch(); err != nil {
		return err
	}
	verifier := func(audience string) *oidc.IDTokenVerifier {
		return oidc.NewVerifier(i.opts.URL, keys, &oidc.Config{
			ClientID: audience, SupportedSigningAlgs: algorithmNames(),
			SkipExpiryCheck: true, // the validator checks the times, with the leeway
		})
	}
	i.found.Store(&discovered{
		keys: keys, access: verifier(i.opts.Audience), id: verifier(i.opts.ClientID),
		login: oauth2.Config{
			ClientID: i.opts.ClientID, ClientSecret: i.opts.ClientSecret,
			RedirectURL: i.opts.RedirectURL, Endpoint: endpoint,
			Scopes: scopes,
		},
	})
	return nil
}

// provider returns what was discovered, or a refusal with the reason UNAVAILABLE.
func (i *Issuer) provider() (*discovered, error) {
	found := i.found.Load()
	if found == nil {
		return nil, apierror.NewUnavailable("the identity provider has not answered yet", nil)
	}
	return found, nil
}

// ring returns the current keys, nil before the discovery.
func (i *Issuer) ring() *keyRing {
	if found := i.found.Load(); found != nil {
		return found.keys.ring.Load()
	}
	return nil
}

// verify checks an access token. Its refusals are Tokens.Verify's, and UNAVAILABLE.
func (i *Issuer) verify(token string) (verified, error) {
	found, err := i.provider()
	if err != nil {
		return verified{}, err
	}
	// Load the ring before the check: a newer ring then ends the cached result.
	ring := found.keys.ring.Load()
	checked, err := found.access.Verify(context.Background(), token)
	if err != nil {
		return verified{}, refuse(i.explain(err, token))
	}
	v, err := i.accept(checked)
	if err != nil {
		return verified{}, refuse(err)
	}
	v.ring = ring
	return v, nil
}

// explain adds the claim that is for another issuer or API, which the library's error says in words
// only. It decides nothing, so it does not need the signature.
func (i *Issuer) explain(err error, token string) error {
	var c jwt.RegisteredClaims
	if _, _, unreadable := jwt.NewParser().ParseUnverified(token, &c); unreadable != nil {
		return err
	}
	switch {
	case c.Issuer != i.opts.URL:
		return fmt.Errorf("%w: %w", jwt.ErrTokenInvalidIssuer, err)
	case !slices.Contains(c.Audience, i.opts.Audience):
		return fmt.Errorf("%w: %w", jwt.ErrTokenInvalidAudience, err)
	default:
		return err
	}
}

// accept checks the times and the claims of a token whose signature, issuer and audience are good.
func (i *Issuer) accept(token *oidc.IDToken) (verified, error) {
	c := issuerClaims{roleClaim: i.opts.RoleClaim}
	if err := token.Claims(&c); err != nil {
		return verified{}, err
	}
	if err := i.validator.Validate(&c.claims); err != nil {
		return verified{}, err
	}
	actor, err := c.actor()
	if err != nil {
		return verified{}, err
	}
	return verified{actor: actor, expiresAt: c.ExpiresAt.Add(clockLeeway)}, nil
}
