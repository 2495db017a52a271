package httpapi

import (
	"context"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/seckill"
)

// guestLife is the lifetime of a guest's session.
const guestLife = 12 * time.Hour

// Names of the session cookie. Browsers accept the prefix __Host- over TLS only and from the very
// host only (RFC 6265bis, 4.1.3).
const (
	plainCookie  = "session"
	secureCookie = "__Host-session"
)

type sessionResponse struct {
	UserID    string       `json:"userId"`
	Role      seckill.Role `json:"role"`
	Name      string       `json:"name"`
	ExpiresAt timestamp    `json:"expiresAt"`
}

// createSession is POST /session: it stores the caller's token in a cookie that scripts cannot
// read.
func (a *api) createSession(ctx context.Context, r *request) (response, error) {
	if err := a.checkOrigin(r.gin.Request); err != nil {
		return response{}, err
	}
	token, err := a.sessionToken(r)
	if err != nil {
		return response{}, err
	}
	if err := r.permit(ctx, nil); err != nil {
		return response{}, err
	}
	value, by, until, err := a.Tokens.Session(token)
	if err != nil {
		return response{}, err
	}
	a.setCookie(r.gin, value, until)
	return ok(sessionResponse{
		UserID: by.ID, Role: by.Role, Name: by.Name, ExpiresAt: timestamp(until),
	}), nil
}

// deleteSession is DELETE /session. It removes the cookie. The token remains valid until it
// expires.
func (a *api) deleteSession(ctx context.Context, r *request) (response, error) {
	if err := a.checkOrigin(r.gin.Request); err != nil {
		return response{}, err
	}
	if err := r.permit(ctx, nil); err != nil {
		return response{}, err
	}
	a.setCookie(r.gin, "", time.Time{})
	return ok(nil), nil
}

// sessionToken returns the token of the body, of a guest or of the Authorization header.
func (a *api) sessionToken(r *request) (string, error) {
	token, guest := r.Has("token"), r.Has("guest")
	switch {
	case strings.Contains(r.gin.Request.URL.RawQuery, "token="):
		return "", apierror.NewBadField("token",
			"must stand in the body: addresses are kept in logs")
	case token && guest:
		return "", apierror.NewBadField("guest", "and token exclude each other")
	case guest:
		return a.guestToken(r)
	case token:
		return strings.TrimSpace(r.Text("token")), r.Err()
	case r.Err() != nil:
		return "", r.Err()
	default:
		return bearer(r.header)
	}
}

// guestToken signs a token for one of the guests that the caller may be.
func (a *api) guestToken(r *request) (string, error) {
	id := r.Text("guest")
	if err := r.Err(); err != nil {
		return "", err
	}
	guests := a.guestsFor(r.gin.Request)
	i := slices.IndexFunc(guests, func(g seckill.Actor) bool { return g.ID == id })
	if i < 0 {
		return "", apierror.New(apierror.NotFound, "there is no such guest")
	}
	return a.Tokens.Sign(guests[i], guestLife)
}

// checkOrigin refuses a request that another site makes the browser send, by Sec-Fetch-Site or
// Origin. Programs send neither and pass. CrossOriginProtection only checks methods that write, so
// reads are presented as POST: they return personal data too.
func (a *api) checkOrigin(r *http.Request) error {
	checked := r.WithContext(r.Context())
	checked.Method = http.MethodPost
	if a.origins.Check(checked) != nil {
		return apierror.New(apierror.Forbidden, "another site asked for this in your name")
	}
	return nil
}

// cookieActor verifies the session cookie.
func (a *api) cookieActor(r *http.Request) (seckill.Actor, error) {
	value, found := a.sessionValue(r)
	if !found {
		return seckill.Actor{}, apierror.New(apierror.Unauthenticated,
			"a bearer token is needed")
	}
	if err := a.checkOrigin(r); err != nil {
		return seckill.Actor{}, err
	}
	return a.tokenActor(r, value)
}

// sessionValue returns the session cookie's value. It ignores two cookies with that name, because
// another site on a parent domain may have set one of them.
func (a *api) sessionValue(r *http.Request) (string, bool) {
	if r.Header["Cookie"] == nil {
		return "", false
	}
	cookies := r.CookiesNamed(a.cookieName(r))
	if len(cookies) != 1 || cookies[0].Value == "" {
		return "", false
	}
	return cookies[0].Value, true
}

// cookieName depends on TLS because browsers reject the prefix without it.
func (a *api) cookieName(r *http.Request) string {
	if a.isTLS(r) {
		return secureCookie
	}
	return plainCookie
}

// setCookie sets the session cookie, or deletes it where the value is empty.
func (a *api) setCookie(c *gin.Context, value string, until time.Time) {
	cookie := http.Cookie{
		Name: a.cookieName(c.Request), Value: value, Path: "/", HttpOnly: true,
		Secure: a.isTLS(c.Request), SameSite: http.SameSiteLaxMode,
		MaxAge: int(time.Until(until).Seconds()),
	}
	if value == "" || cookie.MaxAge <= 0 {
		cookie.Value, cookie.MaxAge = "", -1
	}
	http.SetCookie(c.Writer, &cookie)
}

// isTLS reports whether the browser's connection is encrypted, to this node or to a trusted proxy.
// It ignores the header of any other peer, because the result decides the name of the cookie.
func (a *api) isTLS(r *http.Request) bool {
	if r.TLS != nil {
		return true
	}
	https := strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
	return https && a.fromTrustedProxy(r)
}

func (a *api) fromTrustedProxy(r *http.Request) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && slices.ContainsFunc(a.TrustedProxies, func(p netip.Prefix) bool {
		return p.Contains(from.Addr().Unmap())
	})
}
