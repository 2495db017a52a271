package auth

import (
	"errors"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"flashsale.dev/seckill/internal/seckill"
)

// MinSecret is how many bytes a secret must have: what HS256 puts out (RFC 7518, 3.2).
const MinSecret = 32

// DefaultRemembered is how many verified tokens are remembered where nothing else is asked for: some 60 MB at worst,
// with the longest names; 10 MB with none.
const DefaultRemembered = 65_536

// ErrShortSecret says that a secret has fewer than MinSecret bytes.
var ErrShortSecret = errors.New("a JWT secret must have at least 32 bytes")

// Tokens signs and verifies under one secret.
type Tokens struct {
	secret []byte
	now    func() time.Time
	parser *jwt.Parser
	memory *memory
}

// New makes a Tokens that remembers up to that many verified tokens; 0 or less is none.
func New(secret []byte, remembered int, now func() time.Time) (*Tokens, error) {
	if len(secret) < MinSecret {
		return nil, ErrShortSecret
	}
	return &Tokens{
		secret: secret, now: now, memory: newMemory(remembered),
		parser: jwt.NewParser(
			jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}),
			jwt.WithExpirationRequired(), jwt.WithStrictDecoding(), jwt.WithTimeFunc(now),
		),
	}, nil
}

// Sign makes a token for an actor that is good for so long.
// An actor that Verify would refuse is an error.
func (t *Tokens) Sign(a seckill.Actor, ttl time.Duration) (string, error) {
	now := t.now()
	c := claimsOf(a, now, now.Add(ttl))
	if _, err := c.actor(); err != nil {
		return "", fmt.Errorf("sign a token: %w", err)
	}
	s, err := jwt.NewWithClaims(jwt.SigningMethodHS256, c).SignedString(t.secret)
	if err != nil {
		return "", fmt.Errorf("sign a token: %w", err)
	}
	return s, nil
}

// Verify reads a token: its actor, or a refusal of the reason UNAUTHENTICATED.
func (t *Tokens) Verify(token string) (seckill.Actor, error) {
	k := keyOf(token)
	if a, ok := t.memory.get(k, t.now()); ok {
		return a, nil
	}
	var c claims
	if err := t.parse(token, &c); err != nil {
		return seckill.Actor{}, refuse(err)
	}
	a, err := c.actor()
	if err != nil {
		return seckill.Actor{}, refuse(err)
	}
	t.memory.put(k, entry{actor: a, exp: c.ExpiresAt.Time})
	return a, nil
}

func (t *Tokens) parse(token string, c *claims) error {
	parsed, err := t.parser.ParseWithClaims(token, c, func(*jwt.Token) (any, error) { return t.secret, nil })
	if err != nil {
		return err
	}
	if _, critical := parsed.Header["crit"]; critical { // RFC 7515, 4.1.11: what is not understood is refused
		return errClaims
	}
	return nil
}

func refuse(err error) error {
	message := "the token is not valid"
	if errors.Is(err, jwt.ErrTokenExpired) {
		message = "the token has expired"
	}
	return &seckill.Error{Reason: seckill.Unauthenticated, Message: message, Err: err}
}
