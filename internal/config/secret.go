package config

import (
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"log/slog"

	"flashsale.dev/seckill/internal/auth"
)

// Secret is a string that prints as *** in every format. Reveal returns its value. A configuration
// can then be logged as a whole.
type Secret string

const hidden = "***"

// Reveal returns the value.
func (s Secret) Reveal() string { return string(s) }

// String hides the value from fmt.
func (s Secret) String() string { return hidden }

// GoString hides the value from %#v.
func (s Secret) GoString() string { return hidden }

// LogValue hides the value from slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalText hides the value from JSON and other encodings.
func (s Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// ErrNoSecret reports that no secret exists from which an order secret could be derived.
var ErrNoSecret = errors.New("neither an order secret nor a JWT secret is set")

// Phones parses the keys of phone numbers. Load has validated them.
func (a Auth) Phones() ([]auth.PhoneKey, error) { return auth.ParsePhoneKeys(string(a.PhoneKeys)) }

// OrderKeys returns the secrets of paths and order numbers. The first signs: the configured one, or
// one derived from the JWT secret with HMAC, which does not disclose the JWT secret. A rotated JWT
// secret would change the derived key, which is why the order secret can be set apart; the derived
// one still verifies then. The others only verify. Its error is ErrNoSecret.
func (a Auth) OrderKeys() ([][]byte, error) {
	var keys [][]byte
	if a.OrderSecret != "" {
		keys = append(keys, []byte(a.OrderSecret))
	}
	if a.JWTSecret != "" {
		mac := hmac.New(sha256.New, []byte(a.JWTSecret))
		mac.Write([]byte("flashsale order secret"))
		keys = append(keys, mac.Sum(nil))
	}
	if len(keys) == 0 {
		return nil, ErrNoSecret
	}
	for _, old := range a.OldOrderSecrets {
		keys = append(keys, []byte(old))
	}
	return keys, nil
}
