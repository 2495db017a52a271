package auth

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/golang-jwt/jwt/v5"

	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/userid"
)

// Longest name, phone number and email address of a token, in characters.
const (
	MaxName  = 120
	maxPhone = 32
	maxEmail = 254
)

var errClaims = errors.New("a claim is missing or out of its bounds")

// errActor is errClaims of a token whose signature is good.
var errActor = fmt.Errorf("%w: sub, role, name or phone_number", errClaims)

// errTypes reports claims that can't be decoded, such as a sub that is a number, of a token whose
// signature is good.
var errTypes = errors.New("the claims can't be decoded")

// header is a token's header. Decoding ignores its other members.
type header struct {
	Algorithm string         `json:"alg"`
	Critical  jsontext.Value `json:"crit"`
}

// UnmarshalJSON decodes a header as strictly as claims, and refuses every algorithm but HS256 and
// unknown extensions (RFC 7515, 4.1.11).
func (h *header) UnmarshalJSON(b []byte) error {
	type plain header
	err := json.Unmarshal(b, (*plain)(h))
	if err == nil && (h.Algorithm != jwt.SigningMethodHS256.Alg() || h.Critical != nil) {
		return errClaims
	}
	return err
}

// claims are the claims of our own tokens. Decoding ignores unknown ones.
type claims struct {
	Subject   string       `json:"sub"`
	Role      seckill.Role `json:"role"`
	ExpiresAt *date        `json:"exp"`
	NotBefore *date        `json:"nbf,omitzero"`
	IssuedAt  *date        `json:"iat,omitzero"`
	Name      string       `json:"name,omitzero"`
	Phone     string       `json:"phone_number,omitzero"`
	Email     string       `json:"email,omitzero"`
}

// UnmarshalJSON decodes strictly: repeated names and broken UTF-8 are errors. encoding/json would
// take the last value and repair the text.
func (c *claims) UnmarshalJSON(b []byte) error {
	type plain claims
	return json.Unmarshal(b, (*plain)(c))
}

// date is a time of a token. The JWT library decodes every number as one with a fraction, which is
// slower.
type date struct{ jwt.NumericDate }

// newDate returns a time in whole seconds.
func newDate(t time.Time) *date { return &date{*jwt.NewNumericDate(t)} }

// lastDate is 9999-12-31T00:00:00Z in Unix seconds. RFC 3339 can still write it in any zone and
// with the leeway added. A later date becomes lastDate: the library would let it overflow into the
// past.
const lastDate = 253402214400

// UnmarshalJSON decodes whole seconds itself, and leaves every other text to the library.
func (d *date) UnmarshalJSON(b []byte) error {
	const exact = 15 // digits; the library rounds longer numbers
	seconds, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil || len(b) > exact {
		if number, err := strconv.ParseFloat(string(b), 64); err != nil || number < lastDate {
			return d.NumericDate.UnmarshalJSON(b)
		}
		seconds = lastDate
	}
	d.Time = time.Unix(min(seconds, lastDate), 0)
	return nil
}

// numeric returns the library's type; nil for a missing claim.
func (d *date) numeric() (*jwt.NumericDate, error) {
	if d == nil {
		return nil, nil //nolint:nilnil // as jwt.Claims requires
	}
	return &d.NumericDate, nil
}

// These methods implement jwt.Claims, for the validator that checks the three times. Our own tokens
// have no issuer and no audience.

func (c *claims) GetExpirationTime() (*jwt.NumericDate, error) { return c.ExpiresAt.numeric() }
func (c *claims) GetNotBefore() (*jwt.NumericDate, error)      { return c.NotBefore.numeric() }
func (c *claims) GetIssuedAt() (*jwt.NumericDate, error)       { return c.IssuedAt.numeric() }
func (c *claims) GetSubject() (string, error)                  { return c.Subject, nil }
func (c *claims) GetIssuer() (string, error)                   { return "", nil }
func (c *claims) GetAudience() (jwt.ClaimStrings, error)       { return nil, nil }

// claimsOf returns the claims of a token for an actor.
func claimsOf(a seckill.Actor, iat, exp time.Time) *claims {
	return &claims{
		Subject: a.ID, Role: a.Role, Name: a.Name, Phone: a.Phone, Email: a.Email,
		IssuedAt: newDate(iat), ExpiresAt: newDate(exp),
	}
}

// actor converts the claims; a claim that is missing or out of bounds is an error. An email address
// out of bounds is left out: it is only shown, so its user may still sign in.
func (c *claims) actor() (seckill.Actor, error) {
	if !userid.Valid(c.Subject) || !known(c.Role) ||
		!printable(c.Name, MaxName) || !printable(c.Phone, maxPhone) {
		return seckill.Actor{}, errActor
	}
	if !printable(c.Email, maxEmail) {
		c.Email = ""
	}
	return seckill.Actor{
		ID: c.Subject, Role: c.Role, Name: c.Name, Phone: c.Phone, Email: c.Email,
	}, nil
}

func known(r seckill.Role) bool {
	return r == seckill.Buyer || r == seckill.Merchant || r == seckill.Operator
}

// printable reports whether a text has at most most characters, all of them printable.
func printable(s string, most int) bool {
	return utf8.ValidString(s) && utf8.RuneCountInString(s) <= most &&
		!strings.ContainsFunc(s, unicode.IsControl)
}
