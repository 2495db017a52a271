package config

import (
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"log/slog"

	"flashsale.dev/seckill/internal/auth"
)

// Secret is a string that prints as ***, however it is printed; Reveal gives it away.
type Secret string

const hidden = "***"

// Reveal gives the secret itself.
func (s Secret) Reveal() string { return string(s) }

// String hides it from fmt.
func (s Secret) String() string { return hidden }

// GoString hides it from %#v.
func (s Secret) GoString() string { return hidden }

// LogValue hides it from slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalText hides it from JSON and its like.
func (s Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// ErrNoSecret says that there is nothing to derive an order secret from.
var ErrNoSecret = errors.New("neither an order secret nor a JWT secret is set")

// Phones are the keys of phone numbers that were set; Load has looked at them.
func (a Auth) Phones() ([]auth.PhoneKey, error) { return auth.ParsePhoneKeys(string(a.PhoneKeys)) }

// OrderKey is the secret of the order numbers: the one that was set, else one derived from the JWT secret, from which
// the JWT secret cannot be told.
func (a Auth) OrderKey() ([]byte, error) {
	switch {
	case a.OrderSecret != "":
		return []byte(a.OrderSecret), nil
	case a.JWTSecret == "":
		return nil, ErrNoSecret
	}
	mac := hmac.New(sha256.New, []byte(a.JWTSecret))
	mac.Write([]byte("flashsale order secret"))
	return mac.Sum(nil), nil
}
