package apikey

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"slices"
	"strings"
	"time"

	"flashsale.dev/seckill/internal/seckill"
)

// Scope is a right of a key. The table of routes names the scope that each call needs.
type Scope string

// The scopes of the contract.
const (
	SalesRead     Scope = "sales:read"
	SalesWrite    Scope = "sales:write"
	OrdersRead    Scope = "orders:read"
	OrdersWrite   Scope = "orders:write"
	WebhooksWrite Scope = "webhooks:write"
)

// Scopes returns all scopes, in the order in which keys list them.
func Scopes() []Scope {
	return []Scope{SalesRead, SalesWrite, OrdersRead, OrdersWrite, WebhooksWrite}
}

// maxName is the longest name of a key, in characters.
const maxName = 80

// Key is an API key without its secret. Its JSON is the output of seckillctl.
type Key struct {
	ID         string    `json:"id"`         // 26 characters of [0-9a-v], in the order of creation
	MerchantID string    `json:"merchantId"` // the user whom the key acts as
	Name       string    `json:"name"`
	Scopes     []Scope   `json:"scopes"`
	Hash       []byte    `json:"-"`         // SHA-256 of the secret
	CreatedBy  string    `json:"createdBy"` // the id of a user; empty: seckillctl
	CreatedAt  time.Time `json:"createdAt"`
	LastUsedAt time.Time `json:"lastUsedAt,omitzero"` // within about a minute; zero: never
	RevokedBy  string    `json:"revokedBy,omitzero"`  // as CreatedBy
	RevokedAt  time.Time `json:"revokedAt,omitzero"`  // zero: the key is valid
}

// Prefix is the part of the key's text that is not secret.
func (k Key) Prefix() string { return prefix + k.ID }

// Allows reports whether the key has a scope. No key has the empty scope, which the calls without
// a scope need.
func (k Key) Allows(s Scope) bool { return s != "" && slices.Contains(k.Scopes, s) }

// Actor returns the merchant, with the key that the audit log names.
func (k Key) Actor() seckill.Actor {
	return seckill.Actor{
		ID: k.MerchantID, Role: seckill.Merchant,
		APIKey: seckill.APIKey{ID: k.ID, Name: k.Name},
	}
}

const (
	prefix      = "sk_"
	alphabet    = "0123456789abcdefghijklmnopqrstuv"
	idLength    = 26 // characters for 128 bits
	secretBytes = 32
	textLength  = len(prefix) + idLength + 1 + 52 // 52 characters for the secret's 256 bits
)

// Is reports whether a bearer token is meant as an API key. A JWT has no such prefix.
func Is(token string) bool { return strings.HasPrefix(token, prefix) }

// newText returns the text of a new key, and its id. now is the time of the database, by which ids
// sort.
func newText(now time.Time) (id, text string) {
	encoding := base32.NewEncoding(alphabet).WithPadding(base32.NoPadding)
	secret := make([]byte, secretBytes)
	_, _ = rand.Read(secret) // it never fails
	v7 := seckill.NewRowID(now)
	id = encoding.EncodeToString(v7[:])
	return id, prefix + id + "_" + encoding.EncodeToString(secret)
}

// ValidID reports whether a text has the form of a key's id.
func ValidID(id string) bool { return len(id) == idLength && inAlphabet(id) }

// IDOf returns the id of a key from its text, its Prefix or the id itself. It checks no form: see
// ValidID.
func IDOf(text string) string {
	id, _, _ := strings.Cut(strings.TrimPrefix(text, prefix), "_")
	return id
}

// inAlphabet reports whether a text has only characters of ids and secrets.
func inAlphabet(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return !strings.ContainsRune(alphabet, r) })
}

// parse splits the text of a key; false if it is malformed.
func parse(text string) (id, secret string, ok bool) {
	if len(text) != textLength || !Is(text) {
		return "", "", false
	}
	id, secret, _ = strings.Cut(text[len(prefix):], "_")
	return id, secret, ValidID(id) && inAlphabet(secret)
}

// hashOf returns the SHA-256 of a secret.
func hashOf(secret string) []byte {
	hash := sha256.Sum256([]byte(secret))
	return hash[:]
}

// has reports whether the secret is the key's, in constant time.
func (k Key) has(secret string) bool {
	return subtle.ConstantTimeCompare(k.Hash, hashOf(secret)) == 1
}
