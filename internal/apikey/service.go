package apikey

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/userid"
)

// maxKeys is how many valid keys a merchant may have. Concurrent calls may exceed it slightly.
const maxKeys = 100

// Store keeps API keys.
type Store interface {
	// AddAPIKey stores a new key, for the context's actor.
	AddAPIKey(ctx context.Context, k Key) error
	// APIKeys lists at most limit keys, newest first, with ids below before (empty: from the
	// newest), of one merchant or (empty) of all.
	APIKeys(ctx context.Context, merchantID, before string, limit int) ([]Key, error)
	// APIKeysByID returns those of the given keys that exist, in any order.
	APIKeysByID(ctx context.Context, ids []string) ([]Key, error)
	// CountAPIKeys returns the number of a merchant's valid keys.
	CountAPIKeys(ctx context.Context, merchantID string) (int, error)
	// RevokeAPIKey revokes a key, for the context's actor. A key that is revoked keeps its time and
	// its revoker.
	RevokeAPIKey(ctx context.Context, id, by string, now time.Time) error
	// Now returns the time of the database's server.
	Now(ctx context.Context) (time.Time, error)
}

// Service makes, lists and revokes keys for merchants and operators. It checks which merchant's
// keys an actor may manage. The HTTP layer refuses buyers, and actors who authenticate by a key.
type Service struct{ Store Store }

// NewKey describes a key to make.
type NewKey struct {
	MerchantID string
	Name       string
	Scopes     []Scope
}

// Validate returns a BadRequest that names all bad fields, or nil.
func (n NewKey) Validate() error {
	var p apierror.Problems
	p.Check(!userid.Valid(n.MerchantID), "merchantId",
		"must be the id of a merchant: 1 to 64 printable ASCII characters without spaces")
	p.Check(!validName(n.Name), "name",
		"must have 1 to %d printable characters, not only spaces", maxName)
	p.Check(!validScopes(n.Scopes), "scopes", "must be one or more of %v, each once", Scopes())
	return p.Err()
}

func validName(name string) bool {
	return strings.TrimSpace(name) != "" && utf8.ValidString(name) &&
		utf8.RuneCountInString(name) <= maxName && !strings.ContainsFunc(name, unicode.IsControl)
}

func validScopes(scopes []Scope) bool {
	for i, s := range scopes {
		if !slices.Contains(Scopes(), s) || slices.Contains(scopes[:i], s) {
			return false
		}
	}
	return len(scopes) > 0
}

// Create makes a key and returns it with its text, which is stored nowhere. It refuses with
// BAD_REQUEST, FORBIDDEN for another merchant's key, or CONFLICT beyond maxKeys.
func (s *Service) Create(
	ctx context.Context, by seckill.Actor, n NewKey,
) (k Key, text string, err error) {
	if err := n.Validate(); err != nil {
		return Key{}, "", err
	}
	if !by.MayManage(n.MerchantID) {
		return Key{}, "", apierror.New(apierror.Forbidden, "this is another merchant")
	}
	count, err := s.Store.CountAPIKeys(ctx, n.MerchantID)
	if err != nil {
		return Key{}, "", unreachable(err)
	}
	if count >= maxKeys {
		return Key{}, "", apierror.New(apierror.Conflict,
			"the merchant has %d keys; revoke one first", maxKeys)
	}
	now, err := s.Store.Now(ctx)
	if err != nil {
		return Key{}, "", unreachable(err)
	}
	id, text := newText(now)
	_, secret, _ := parse(text)
	k = Key{
		ID: id, MerchantID: n.MerchantID, Name: n.Name, Scopes: inOrder(n.Scopes),
		Hash: hashOf(secret), CreatedBy: by.ID, CreatedAt: now.UTC().Truncate(time.Millisecond),
	}
	err = s.Store.AddAPIKey(seckill.WithActor(ctx, by), k)
	return k, text, apierror.OrUnavailable(err,
		"the key may have been made without this answer; if the list shows it, revoke it")
}

// inOrder returns the scopes in the order of Scopes.
func inOrder(scopes []Scope) []Scope {
	return slices.DeleteFunc(Scopes(), func(s Scope) bool { return !slices.Contains(scopes, s) })
}

// List lists at most limit keys that the actor may manage, newest first, with ids below before. An
// operator may choose one merchant. A merchant who chooses another is refused with FORBIDDEN.
func (s *Service) List(
	ctx context.Context, by seckill.Actor, merchantID, before string, limit int,
) ([]Key, error) {
	merchantID = cmp.Or(merchantID, by.ManagedMerchant())
	if !by.MayManage(merchantID) {
		return nil, apierror.New(apierror.Forbidden, "this is another merchant")
	}
	keys, err := s.Store.APIKeys(ctx, merchantID, before, limit)
	return keys, unreachable(err)
}

// Revoke revokes a key on every node within a second, and returns it. Repeated calls change
// nothing. It refuses with NOT_FOUND or FORBIDDEN.
func (s *Service) Revoke(ctx context.Context, by seckill.Actor, id string) (Key, error) {
	k, err := s.Find(ctx, id)
	switch {
	case err != nil:
		return Key{}, err
	case !by.MayManage(k.MerchantID):
		return Key{}, apierror.New(apierror.Forbidden, "this is another merchant's key")
	}
	now, err := s.Store.Now(ctx)
	if err == nil {
		err = s.Store.RevokeAPIKey(seckill.WithActor(ctx, by), id, by.ID, now)
	}
	if err != nil {
		return Key{}, unreachable(err)
	}
	return s.Find(ctx, id)
}

// Find returns a key to any caller, or refuses with NOT_FOUND.
func (s *Service) Find(ctx context.Context, id string) (Key, error) {
	if !ValidID(id) {
		return Key{}, errNoKey()
	}
	found, err := s.Store.APIKeysByID(ctx, []string{id})
	if err != nil {
		return Key{}, unreachable(err)
	}
	if len(found) == 0 {
		return Key{}, errNoKey()
	}
	return found[0], nil
}

// unreachable returns an error of the store as Unavailable.
func unreachable(err error) error {
	return apierror.OrUnavailable(err, "the API keys can't be reached")
}

func errNoKey() error { return apierror.New(apierror.NotFound, "there is no such API key") }
