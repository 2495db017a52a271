package httpapi

import (
	"context"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"flashsale.dev/seckill/internal/seckill"
)

// Sessions make what a session's cookie holds; *auth.Tokens is one.
type Sessions interface {
	// Session makes of a good token one that is as good, as long, and small enough for a cookie. Its refusal is UNAUTHENTICATED.
	Session(token string) (value string, by seckill.Actor, until time.Time, err error)
	// Sign makes a token for an actor.
	Sign(by seckill.Actor, life time.Duration) (string, error)
}

// guestLife is how long a guest's session lasts.
const guestLife = 12 * time.Hour

// The session's cookie. One with the prefix is taken by browsers over TLS only, from this very host only (RFC 6265bis, 4.1.3).
const (
	plainCookie  = "session"
	secureCookie = "__Host-session"
)

func (a *api) sessionRoutes() []route {
	if a.Sessions == nil {
		return nil
	}
	return []route{
		{methods: []string{http.MethodPost}, path: "/session", public: true, fields: []string{"token", "guest"}, handle: a.createSession},
		{methods: []string{http.MethodDelete}, path: "/session", public: true, handle: a.deleteSession},
	}
}

type sessionResponse struct {
	UserID    int64        `json:"userId,string"`
	Role      seckill.Role `json:"role"`
	Name      string       `json:"name"`
	ExpiresAt timestamp    `json:"expiresAt"`
}

// enter is POST /session: a token in the body or in the Authorization header becomes a cookie that scripts can't read.
func (a *api) createSession(ctx context.Context, r *request) (response, error) {
	c := requestContextOf(ctx).gin
	if err := a.checkOrigin(c.Request); err != nil {
		return response{}, err
	}
	token, err := a.sessionToken(c.Request, r)
	if err != nil {
		return response{}, err
	}
	value, by, until, err := a.Sessions.Session(token)
	if err != nil {
		return response{}, err
	}
	a.setCookie(c.Writer.Header(), c.Request, value, until)
	return ok(sessionResponse{UserID: by.ID, Role: by.Role, Name: by.Name, ExpiresAt: timestamp(until)}), nil
}

// leave is DELETE /session. The token itself can't be taken back: it ends when it ends, but this browser has it no more.
func (a *api) deleteSession(ctx context.Context, _ *request) (response, error) {
	c := requestContextOf(ctx).gin
	if err := a.checkOrigin(c.Request); err != nil {
		return response{}, err
	}
	a.setCookie(c.Writer.Header(), c.Request, "", time.Time{})
	return ok(nil), nil
}

// tokenOf is the token that a session is asked for with.
func (a *api) sessionToken(req *http.Request, r *request) (string, error) {
	token, guest := r.Has("token"), r.Has("guest")
	switch {
	case strings.Contains(req.URL.RawQuery, "token="):
		return "", seckill.NewFieldError("token", "must stand in the body: addresses are kept in logs")
	case token && guest:
		return "", seckill.NewFieldError("guest", "and token exclude each other")
	case guest:
		return a.guestToken(r)
	case token:
		return strings.TrimSpace(r.Text("token")), r.Err()
	default:
		return bearer(req.Header)
	}
}

// guestToken signs one of those in who may try the shop without an account: standalone's visitors, and nobody elsewhere.
func (a *api) guestToken(r *request) (string, error) {
	id := r.ID("guest")
	if err := r.Err(); err != nil {
		return "", err
	}
	i := slices.IndexFunc(a.guests, func(g seckill.Actor) bool { return g.ID == id })
	if i < 0 {
		return "", seckill.NewError(seckill.NotFound, "there is no such guest")
	}
	return a.Sessions.Sign(a.guests[i], guestLife)
}

// fromHere refuses what another site has a browser send on its own: by Sec-Fetch-Site, or by Origin where a browser
// says only that. Programs send neither and pass. Reads are judged as writes are: what a cookie opens is nobody else's.
func (a *api) checkOrigin(r *http.Request) error {
	judged := r.WithContext(r.Context())
	judged.Method = http.MethodPost
	if a.origins.Check(judged) != nil {
		return seckill.NewError(seckill.Forbidden, "another site asked for this in your name")
	}
	return nil
}

// cookieActor is who the session's cookie says is asking. Without one the refusal is that of no token.
func (a *api) cookieActor(r *http.Request) (seckill.Actor, error) {
	value, found := a.sessionValue(r)
	if !found {
		return seckill.Actor{}, seckill.NewError(seckill.Unauthenticated, "a bearer token is needed")
	}
	if err := a.checkOrigin(r); err != nil {
		return seckill.Actor{}, err
	}
	return a.Tokens.Verify(value)
}

// sessionValue reads the session's cookie. Two of one name are none: one of them is not ours.
func (a *api) sessionValue(r *http.Request) (string, bool) {
	if a.Sessions == nil || r.Header["Cookie"] == nil {
		return "", false
	}
	cookies := r.CookiesNamed(a.cookieName(r))
	if len(cookies) != 1 || cookies[0].Value == "" {
		return "", false
	}
	return cookies[0].Value, true
}

func (a *api) cookieName(r *http.Request) string {
	if a.isTLS(r) {
		return secureCookie
	}
	return plainCookie
}

// setCookie gives a session to the browser, or with no value takes it back.
func (a *api) setCookie(h http.Header, r *http.Request, value string, until time.Time) {
	c := http.Cookie{
		Name: a.cookieName(r), Value: value, Path: "/", HttpOnly: true, Secure: a.isTLS(r), SameSite: http.SameSiteLaxMode,
		MaxAge: int(until.Sub(a.now()).Seconds()),
	}
	if value == "" || c.MaxAge <= 0 {
		c.Value, c.MaxAge = "", -1
	}
	h.Add("Set-Cookie", c.String())
}

// overTLS tells whether the browser's side of the connection is encrypted: here, or as a proxy says that is believed.
func (a *api) isTLS(r *http.Request) bool {
	if r.TLS != nil {
		return true
	}
	return strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https") && a.fromTrustedProxy(r)
}

// believed tells whether a request comes from a proxy whose word is taken.
func (a *api) fromTrustedProxy(r *http.Request) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && slices.ContainsFunc(a.proxies, func(p netip.Prefix) bool { return p.Contains(from.Addr().Unmap()) })
}
