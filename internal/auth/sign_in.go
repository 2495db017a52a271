package auth

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/seckill"
)

var (
	errForeignSignIn = errors.New("the answer is not for this sign-in")
	errNoIDToken     = errors.New("the token endpoint returned no ID token")
)

// SignIn is a sign-in at the issuer that has begun: OpenID Connect's authorization code flow with
// PKCE (RFC 7636). The browser that began it keeps it in a cookie; all three texts are random.
type SignIn struct {
	State    string // returns in the address: another site can't finish its own sign-in here
	Nonce    string // returns in the ID token, so that the token serves one sign-in only
	Verifier string // goes with the code to the issuer, so that a stolen code alone is useless
}

// BeginSignIn returns a new sign-in and the issuer's address for it. Its error is UNAVAILABLE.
func (i *Issuer) BeginSignIn() (SignIn, string, error) {
	found, err := i.provider()
	if err != nil {
		return SignIn{}, "", err
	}
	s := SignIn{
		State: oauth2.GenerateVerifier(), Nonce: oauth2.GenerateVerifier(),
		Verifier: oauth2.GenerateVerifier(),
	}
	return s, found.login.AuthCodeURL(s.State,
		oidc.Nonce(s.Nonce), oauth2.S256ChallengeOption(s.Verifier)), nil
}

// SignInReply is what the issuer puts into the address to which a browser returns.
type SignInReply struct {
	State  string
	Code   string
	Issuer string // "": the issuer sends none (RFC 9207)
}

// FinishSignIn exchanges the code of a reply and returns the user. Every error but UNAVAILABLE
// means that the user has to begin again; it contains neither codes nor tokens of ours.
func (i *Issuer) FinishSignIn(
	ctx context.Context, s SignIn, r SignInReply,
) (seckill.Actor, error) {
	found, err := i.provider()
	if err != nil {
		return seckill.Actor{}, err
	}
	if s.State == "" || subtle.ConstantTimeCompare([]byte(s.State), []byte(r.State)) != 1 ||
		r.Issuer != "" && r.Issuer != i.opts.URL {
		return seckill.Actor{}, errForeignSignIn
	}
	ctx = oidc.ClientContext(ctx, i.opts.Client)
	tokens, err := found.login.Exchange(ctx, r.Code, oauth2.VerifierOption(s.Verifier))
	if err != nil {
		err = fmt.Errorf("exchange the code: %w", err)
		if isDown(err) {
			err = apierror.NewUnavailable("the identity provider does not answer", err)
		}
		return seckill.Actor{}, err
	}
	text, ok := tokens.Extra("id_token").(string)
	if !ok {
		return seckill.Actor{}, errNoIDToken
	}
	token, err := found.id.Verify(ctx, text)
	if err != nil {
		return seckill.Actor{}, fmt.Errorf("verify the ID token: %w", err)
	}
	return i.signedIn(token, s)
}

// isDown reports whether a call of the token endpoint failed because the issuer is down: it sent no
// answer, or a 5xx.
func isDown(err error) bool {
	if answer, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		return answer.Response.StatusCode >= http.StatusInternalServerError
	}
	_, ok := errors.AsType[*url.Error](err)
	return ok
}

// signedIn checks that an ID token is for this client and for this sign-in.
func (i *Issuer) signedIn(token *oidc.IDToken, s SignIn) (seckill.Actor, error) {
	var c issuerClaims
	if err := token.Claims(&c); err != nil {
		return seckill.Actor{}, fmt.Errorf("decode the ID token: %w", err)
	}
	if s.Nonce == "" || subtle.ConstantTimeCompare([]byte(s.Nonce), []byte(c.nonce)) != 1 ||
		c.party != "" && c.party != i.opts.ClientID {
		return seckill.Actor{}, errForeignSignIn
	}
	v, err := i.accept(token)
	return v.actor, err
}
