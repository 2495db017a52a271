package auth

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"flashsale.dev/seckill/internal/seckill"
)

// issuerClaims are the claims of an issuer's token. They differ from ours in where the role is.
type issuerClaims struct {
	claims

	roleClaim string
	nonce     string
	party     string // "azp": the client that an ID token is for
}

// UnmarshalJSON decodes as strictly as claims. Unknown claims are ignored.
func (c *issuerClaims) UnmarshalJSON(b []byte) error {
	var all map[string]jsontext.Value
	if err := json.Unmarshal(b, &all); err != nil {
		return err
	}
	for name, to := range map[string]any{
		"sub": &c.Subject, "exp": &c.ExpiresAt, "nbf": &c.NotBefore, "iat": &c.IssuedAt,
		"name": &c.Name, "phone_number": &c.Phone, "email": &c.Email, "nonce": &c.nonce, "azp": &c.party,
	} {
		if value, found := all[name]; found {
			if err := json.Unmarshal(value, to); err != nil {
				return err
			}
		}
	}
	c.Role = roleIn(claimAt(all, c.roleClaim))
	return nil
}

// claimAt returns the claim with a name, or at a dotted path; nil if there is none. A name with
// dots comes first, because some providers require addresses as names.
func claimAt(all map[string]jsontext.Value, path string) jsontext.Value {
	if value, found := all[path]; found {
		return value
	}
	name, rest, nested := strings.Cut(path, ".")
	var inner map[string]jsontext.Value
	if !nested || json.Unmarshal(all[name], &inner) != nil {
		return nil
	}
	return claimAt(inner, rest)
}

// roleIn returns the most powerful role of a text or a list of texts. A user without one is a
// buyer, who may do least.
func roleIn(value jsontext.Value) seckill.Role {
	var one string
	var roles []string
	if json.Unmarshal(value, &one) == nil {
		roles = []string{one}
	} else if json.Unmarshal(value, &roles) != nil {
		return seckill.Buyer
	}
	for _, role := range []seckill.Role{seckill.Operator, seckill.Merchant} {
		if slices.Contains(roles, string(role)) {
			return role
		}
	}
	return seckill.Buyer
}
