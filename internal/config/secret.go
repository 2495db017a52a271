package config

import (
	"errors"
	"strings"

	"flashsale.dev/seckill/internal/auth"
	"flashsale.dev/seckill/internal/ordersn"
)

// Secret is a string that prints as *** in every format. Reveal returns its value. A configuration
// can then be logged as a whole.
type Secret string

const hidden = "***"

// Reveal returns the value.
func (s Secret) Reveal() string { return string(s) }

// Ring returns the secrets of a comma list, without spaces around them; nil for an empty list.
func (s Secret) Ring() (ring [][]byte) {
	if s == "" {
		return nil
	}
	for _, one := range split(string(s)) {
		ring = append(ring, []byte(one))
	}
	return ring
}

// split returns the items of a comma list, without spaces around them. Some may be empty.
func split(list string) []string {
	items := strings.Split(list, ",")
	for i := range items {
		items[i] = strings.TrimSpace(items[i])
	}
	return items
}

// String hides the value from fmt.
func (s Secret) String() string { return hidden }

// GoString hides the value from %#v.
func (s Secret) GoString() string { return hidden }

// MarshalText hides the value from slog, JSON and other encodings.
func (s Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// errNoSecret reports that no secret exists from which an order secret could be derived.
var errNoSecret = errors.New("neither SECKILL_ORDER_SECRET nor SECKILL_JWT_SECRET is set")

// Phones parses the keys of phone numbers. Load has validated them.
func (a Auth) Phones() ([]auth.PhoneKey, error) { return auth.ParsePhoneKeys(string(a.PhoneKeys)) }

// OrderKeys returns the secrets of paths and order numbers. The first signs: the configured one, or
// one derived from the first JWT secret with HMAC, which does not disclose the JWT secret. Those
// derived from the other JWT secrets verify, and so do the former order secrets. Its error is
// errNoSecret.
func (a Auth) OrderKeys() ([][]byte, error) {
	var keys [][]byte
	if a.OrderSecret != "" {
		keys = append(keys, []byte(a.OrderSecret))
	}
	for _, secret := range a.JWTSecret.Ring() {
		keys = append(keys, ordersn.Derive(secret, "flashsale order secret"))
	}
	if len(keys) == 0 {
		return nil, errNoSecret
	}
	for one := range strings.SplitSeq(string(a.OldOrderSecrets), ",") {
		trimmed := strings.TrimSpace(one)
		if trimmed == "" {
			continue
		}
		keys = append(keys, []byte(trimmed))
		if one != trimmed { // OrderSecret signs with its spaces, such as the line break of a file
			keys = append(keys, []byte(one))
		}
	}
	return keys, nil
}

// SessionKeys returns the secrets of the pages' sessions, which are tokens of our own: the JWT
// secrets, or one derived from the order secret. The first signs. Former order secrets are
// not used: they verify order numbers for years, and may have leaked meanwhile.
func (a Auth) SessionKeys() [][]byte {
	if a.JWTSecret != "" || a.OrderSecret == "" {
		return a.JWTSecret.Ring()
	}
	return [][]byte{ordersn.Derive([]byte(a.OrderSecret), "flashsale session secret")}
}

// warnings names the secrets that are those of an example, such as .env.example. Everybody can then
// sign tokens of every user with the first, and paths with the second.
func (a Auth) warnings() (all []string) {
	warn := func(name string, s Secret) {
		for _, one := range split(string(s)) {
			if strings.HasPrefix(one, "change-me") || strings.HasPrefix(one, "your-own-secret") {
				all = append(all, name+" is the value of an example, which everybody can read: "+
					"set a secret of your own, such as the output of: openssl rand -base64 33")
				return
			}
		}
	}
	warn("SECKILL_JWT_SECRET", a.JWTSecret)
	warn("SECKILL_ORDER_SECRET", a.OrderSecret)
	return all
}
