package auth

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/golang-jwt/jwt/v5"
	lru "github.com/hashicorp/golang-lru/v2"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/seckill"
)

// MinSecret is the shortest secret in bytes: the output size of HS256 (RFC 7518, 3.2).
const MinSecret = 32

// ErrShortSecret reports a secret of fewer than MinSecret bytes.
var ErrShortSecret = errors.New("a JWT secret must have at least 32 bytes")

// Tokens signs and verifies tokens with a ring of secrets, and verifies those of an issuer. It is
// safe for concurrent use.
type Tokens struct {
	secret    []byte  // the first of the ring, which signs
	issuer    *Issuer // nil: only our own tokens are valid
	now       func() time.Time
	validator *jwt.Validator                  // checks the times
	encoding  *base64.Encoding                // strict, but it ignores CR and LF
	macs      []*sync.Pool                    // by secret: HMAC states that have hashed it
	cache     *lru.Cache[tokenHash, verified] // nil: every token is verified again
}

// tokenHash is a token's SHA-256. The cache holds no tokens, so that a memory dump has none.
type tokenHash [sha256.Size]byte

// verified is a cached result of Verify.
type verified struct {
	actor     seckill.Actor
	expiresAt time.Time
	ring      *keyRing // of the issuer when it verified the token; nil for our own tokens
}

// Options configure a Tokens.
type Options struct {
	Secrets   [][]byte // the first signs, all verify
	Issuer    *Issuer  // verifies tokens that are not signed with HS256; may be nil
	CacheSize int      // verified tokens that are cached; 0 disables the cache
	Now       func() time.Time
}

// New returns a Tokens with one secret that caches up to cacheSize verified tokens.
func New(secret []byte, cacheSize int, now func() time.Time) (*Tokens, error) {
	return NewTokens(Options{Secrets: [][]byte{secret}, CacheSize: cacheSize, Now: now})
}

// NewTokens returns a Tokens. Its error is ErrShortSecret without a secret or with a short one.
func NewTokens(o Options) (*Tokens, error) {
	if len(o.Secrets) == 0 {
		return nil, ErrShortSecret
	}
	t := &Tokens{
		secret: o.Secrets[0], issuer: o.Issuer, now: o.Now,
		encoding:  base64.RawURLEncoding.Strict(),
		validator: jwt.NewValidator(jwt.WithExpirationRequired(), jwt.WithTimeFunc(o.Now)),
	}
	for _, secret := range o.Secrets {
		if len(secret) < MinSecret {
			return nil, ErrShortSecret
		}
		t.macs = append(t.macs, &sync.Pool{
			New: func() any { return hmac.New(sha256.New, secret) },
		})
	}
	if o.CacheSize > 0 {
		t.cache, _ = lru.New[tokenHash, verified](o.CacheSize) // it fails for sizes below 1
	}
	return t, nil
}

// Sign returns a token for an actor that expires after ttl. An actor that Verify would refuse is an
// error.
func (t *Tokens) Sign(a seckill.Actor, ttl time.Duration) (string, error) {
	now := t.now()
	c := claimsOf(a, now, now.Add(ttl))
	if kept, err := c.actor(); err != nil || kept.Email != a.Email {
		return "", fmt.Errorf("sign a token: %w", cmp.Or(err, errClaims))
	}
	s, err := jwt.NewWithClaims(jwt.SigningMethodHS256, c).SignedString(t.secret)
	if err != nil {
		return "", fmt.Errorf("sign a token: %w", err)
	}
	return s, nil
}

// Verify returns the actor of a token, or a refusal with the reason UNAUTHENTICATED.
func (t *Tokens) Verify(token string) (seckill.Actor, error) {
	a, _, err := t.VerifyWithExpiry(token)
	return a, err
}

// VerifyWithExpiry works as Verify, and returns the time from which on it refuses the token.
func (t *Tokens) VerifyWithExpiry(token string) (seckill.Actor, time.Time, error) {
	if t.cache == nil {
		v, err := t.verify(token)
		return v.actor, v.expiresAt, err
	}
	const usual = 512 // bytes of most tokens; a buffer of this size stays on the stack
	hash := tokenHash(sha256.Sum256(append(make([]byte, 0, usual), token...)))
	cached, found := t.cache.Get(hash)
	if found && t.now().Before(cached.expiresAt) && t.isCurrent(cached) {
		return cached.actor, cached.expiresAt, nil
	}
	v, err := t.verify(token)
	if err != nil {
		if found { // it has expired, or the issuer has withdrawn its key
			t.cache.Remove(hash)
		}
		return seckill.Actor{}, time.Time{}, err
	}
	t.cache.Add(hash, v)
	return v.actor, v.expiresAt, nil
}

// isCurrent reports whether the issuer's keys are those that verified a cached token.
func (t *Tokens) isCurrent(v verified) bool { return v.ring == nil || v.ring == t.issuer.ring() }

// Session exchanges a valid token for a token of our own, the value of a cookie, with the same
// actor and expiry. An issuer's token may be too large for a cookie. It refuses what Verify
// refuses.
func (t *Tokens) Session(
	token string,
) (value string, by seckill.Actor, until time.Time, err error) {
	v, err := t.verify(token)
	if err != nil {
		return "", seckill.Actor{}, time.Time{}, err
	}
	value, err = t.Sign(v.actor, v.expiresAt.Sub(t.now()))
	return value, v.actor, v.expiresAt, err
}

// verify checks the signature, the times and the claims of a token.
func (t *Tokens) verify(token string) (verified, error) {
	if strings.ContainsAny(token, "\r\n") { // the decoders would ignore them
		return verified{}, refuse(jwt.ErrTokenMalformed)
	}
	if t.issuer != nil && !t.isOwn(token) {
		return t.issuer.verify(token)
	}
	var c claims
	if err := t.parse(token, &c); err != nil {
		return verified{}, refuse(err)
	}
	a, err := c.actor()
	if err != nil {
		return verified{}, refuse(err)
	}
	return verified{actor: a, expiresAt: c.ExpiresAt.Time}, nil
}

// isOwn reports whether a token's header names HS256, or can't be decoded. An issuer's tokens are
// never verified with a secret, nor ours with an issuer's key.
func (t *Tokens) isOwn(token string) bool {
	head, _, _ := strings.Cut(token, ".")
	if head == usualHeader {
		return true
	}
	text, err := t.encoding.DecodeString(head)
	var h struct {
		Algorithm string `json:"alg"`
	}
	return err != nil || json.Unmarshal(text, &h) != nil ||
		!slices.Contains(algorithmNames(), h.Algorithm)
}

// parse verifies a token's signature, decodes it and verifies its times. It does not use
// jwt.Parser, which decodes the header into a map.
func (t *Tokens) parse(token string, c *claims) error {
	end := max(0, strings.LastIndexByte(token, '.'))
	mac, err := t.encoding.DecodeString(strings.TrimPrefix(token[end:], "."))
	if err != nil {
		return err
	}
	if !t.signs(token[:end], mac) {
		return jwt.ErrTokenSignatureInvalid
	}
	head, payload, _ := strings.Cut(token[:end], ".")
	if head != usualHeader {
		if err := t.decode(head, &header{}); err != nil {
			return err
		}
	}
	if err := t.decode(payload, c); err != nil {
		return fmt.Errorf("%w: %w", errTypes, err)
	}
	return t.validator.Validate(c)
}

// usualHeader is {"alg":"HS256","typ":"JWT"}, with which most libraries sign.
const usualHeader = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9"

// signs reports whether a MAC is that of a text under one of the secrets.
func (t *Tokens) signs(text string, mac []byte) bool {
	return slices.ContainsFunc(t.macs, func(p *sync.Pool) bool { return signs(p, text, mac) })
}

// signs reports whether a MAC is that of a text under a pool's secret.
func signs(macs *sync.Pool, text string, mac []byte) bool {
	h := macs.Get().(hash.Hash)
	defer macs.Put(h)
	h.Reset()
	h.Write([]byte(text))
	return hmac.Equal(h.Sum(make([]byte, 0, sha256.Size)), mac)
}

// decode decodes one part of a token.
func (t *Tokens) decode(part string, to json.Unmarshaler) error {
	text, err := t.encoding.DecodeString(part)
	if err != nil {
		return err
	}
	return to.UnmarshalJSON(text)
}

// refuse converts an error to a refusal whose message contains no part of the token.
func refuse(err error) error {
	message := "the token is not valid"
	switch {
	case errors.Is(err, jwt.ErrTokenExpired):
		message = "the token has expired"
	case errors.Is(err, jwt.ErrTokenNotValidYet):
		message = "the token is not valid yet; compare the clocks"
	case errors.Is(err, jwt.ErrTokenRequiredClaimMissing):
		message = "the token has no exp"
	case errors.Is(err, jwt.ErrTokenInvalidIssuer):
		message = "the token's iss is not the issuer of this API's users"
	case errors.Is(err, jwt.ErrTokenInvalidAudience):
		message = "the token's aud does not name this API"
	case errors.Is(err, errTypes):
		message = "the token's claims can't be read: sub, role, name, phone_number and email are " +
			"texts; exp, nbf and iat are numbers"
	case errors.Is(err, errActor):
		message = "the token's sub, role, name or phone_number is missing or out of its bounds"
	}
	return &apierror.Error{Reason: apierror.Unauthenticated, Message: message, Err: err}
}
