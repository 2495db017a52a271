package httpapi

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"time"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/auth"
	"flashsale.dev/seckill/internal/seckill"
)

// SignInCallback is the path to which the issuer returns a browser.
const SignInCallback = "/session/callback"

const (
	sessionPath = "/session" // a sign-in that begins there ends at the page of the user's role
	// signInTime is how long a user may take at the issuer.
	signInTime = 15 * time.Minute
	// Names of the cookie that holds a startedSignIn.
	plainSignIn  = "signin"
	secureSignIn = "__Host-signin"
)

// startedSignIn is a sign-in that this browser has begun and the issuer has not finished.
type startedSignIn struct {
	auth.SignIn

	To string // the path of the page to open afterwards
}

// ownPage matches the paths of pages that a sign-in may lead to. Addresses of other sites don't
// match, nor "//host".
var ownPage = regexp.MustCompile(`^/(session|console(/[\w-]+)*|s/\d+(\?quantity=\d+)?|o/[\w-]+)?$`)

// beginSignIn sends the browser to the issuer, and stores the sign-in in a cookie that scripts
// can't read. The cookie is SameSite=Lax, because the issuer's redirect comes from another site.
func (a *api) beginSignIn(r *request, to string) (response, error) {
	signIn, address, err := a.Issuer.BeginSignIn()
	if err != nil {
		return a.stopPage(r, apierror.Unavailable, "signin.down")
	}
	if !ownPage.MatchString(to) {
		to = "/"
	}
	text, err := json.Marshal(startedSignIn{SignIn: signIn, To: to})
	if err != nil {
		return response{}, err
	}
	cookie := a.signInCookie(r.gin.Request)
	cookie.Value = base64.RawURLEncoding.EncodeToString(text)
	cookie.MaxAge = int(signInTime.Seconds())
	return a.redirect(address, cookie), nil
}

// signInCookie returns the cookie without a value, which deletes it.
func (a *api) signInCookie(r *http.Request) *http.Cookie {
	name, secure := plainSignIn, a.isTLS(r)
	if secure {
		name = secureSignIn
	}
	return &http.Cookie{
		Name: name, Path: "/", HttpOnly: true, Secure: secure,
		SameSite: http.SameSiteLaxMode, MaxAge: -1,
	}
}

// finishSignIn is GET /session/callback, to which the issuer returns the browser. The cookie proves
// that this browser began the sign-in. After a failure it shows a page from which the user may try
// again. A redirect to the issuer would loop while the issuer refuses.
func (a *api) finishSignIn(ctx context.Context, r *request) (response, error) {
	if err := a.Limiter.limitRoute(ctx, 0, seckill.Actor{}); err != nil {
		return response{}, err // each code costs a call of the issuer
	}
	c, deletion := r.gin, a.signInCookie(r.gin.Request)
	started, err := a.startedSignInOf(c.Request)
	if err == nil && c.Query("error") != "" {
		// A code of OAuth is short; the address may be anybody's.
		err = fmt.Errorf("the issuer refused: %.100s", c.Query("error"))
	}
	var user seckill.Actor
	if err == nil {
		user, err = a.Issuer.FinishSignIn(ctx, started.SignIn, auth.SignInReply{
			State: c.Query("state"), Code: c.Query("code"), Issuer: c.Query("iss"),
		})
	}
	if err != nil {
		a.warn(ctx,
			"sign-in at the issuer failed; compare the redirect URI, client, secret and clocks",
			"err", err)
		http.SetCookie(c.Writer, deletion)
		if apierror.ReasonOf(err) == apierror.Unavailable {
			return a.stopPage(r, apierror.Unavailable, "signin.down")
		}
		return a.stopPage(r, apierror.BadRequest, "signin")
	}
	value, err := a.Tokens.Sign(user, a.IssuerSession)
	if err != nil {
		return response{}, err
	}
	a.setCookie(c, value, time.Now().Add(a.IssuerSession))
	to := started.To
	if to == sessionPath && isSeller(user) {
		to = "/console"
	} else if to == sessionPath {
		to = "/"
	}
	return a.redirect(to, deletion), nil
}

var errNoSignIn = errors.New("this browser has begun no sign-in, or too long ago")

// startedSignInOf returns the sign-in of the cookie. It ignores two cookies, because another site
// on a parent domain may have set one of them.
func (a *api) startedSignInOf(r *http.Request) (started startedSignIn, err error) {
	cookies := r.CookiesNamed(a.signInCookie(r).Name)
	if len(cookies) != 1 {
		return startedSignIn{}, errNoSignIn
	}
	text, err := base64.RawURLEncoding.DecodeString(cookies[0].Value)
	if err != nil {
		return startedSignIn{}, err
	}
	if err := json.Unmarshal(text, &started); err != nil {
		return startedSignIn{}, err
	}
	if !ownPage.MatchString(started.To) {
		started.To = "/"
	}
	return started, nil
}
