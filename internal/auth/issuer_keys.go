package auth

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"
	"golang.org/x/sync/singleflight"
)

const (
	// keysLifetime is the age at which the keys are fetched again. A key that the issuer withdraws
	// verifies for at most this long, and a fetch.
	keysLifetime = time.Minute
	// keysPause is the shortest time between two fetches. Forged tokens with unknown key ids would
	// otherwise make every node a load on the issuer.
	keysPause = 5 * time.Second
	// maxKeysBytes bounds the issuer's answer.
	maxKeysBytes = 1 << 20
	minRSABits   = 2048 // RFC 7518, 3.3
)

var (
	errNoKey    = errors.New("no key of the issuer verifies the signature")
	errNoKeySet = errors.New("the answer is not a set of keys")
	errCritical = errors.New("no critical extension is supported") // RFC 7515, 4.1.11
)

// algorithms returns those that an issuer may sign with. HS256 is not one: its key would be the
// issuer's public key, with which anybody could sign.
func algorithms() []jose.SignatureAlgorithm {
	return []jose.SignatureAlgorithm{jose.RS256, jose.ES256, jose.EdDSA}
}

func algorithmNames() (names []string) {
	for _, a := range algorithms() {
		names = append(names, string(a))
	}
	return names
}

// issuerKeys caches an issuer's public keys. It implements oidc.KeySet. The key set of go-oidc
// fetches again for every token with an unknown key, and keeps withdrawn keys until then.
type issuerKeys struct {
	url    string
	host   string
	client *http.Client
	now    func() time.Time
	log    *slog.Logger
	count  func(error) // counts a fetch by its error

	ring    atomic.Pointer[keyRing]
	fetches singleflight.Group
	mu      sync.Mutex
	tried   time.Time // start of the last fetch by renew; guarded by mu
}

// keyRing is the keys of one fetch. A fetch that finds the same keys keeps the same ring.
type keyRing struct {
	text []byte
	keys []jose.JSONWebKey
}

// VerifySignature returns the payload of a token that one of the keys signed.
func (k *issuerKeys) VerifySignature(_ context.Context, token string) ([]byte, error) {
	signed, err := jose.ParseSignedCompact(token, algorithms())
	if err != nil {
		return nil, err
	}
	head := signed.Signatures[0].Header
	// The library accepts an empty list, and the extension b64, which no JWT may have.
	if _, critical := head.ExtraHeaders["crit"]; critical {
		return nil, errCritical
	}
	if head.KeyID != "" && !k.ring.Load().has(head.KeyID) {
		k.renew()
	}
	for _, key := range k.ring.Load().keys {
		if (head.KeyID != "" && key.KeyID != head.KeyID) || !fits(key, head.Algorithm) {
			continue
		}
		if payload, err := signed.Verify(key.Key); err == nil {
			return payload, nil
		}
	}
	return nil, errNoKey
}

func (r *keyRing) has(id string) bool {
	return slices.ContainsFunc(r.keys, func(k jose.JSONWebKey) bool { return k.KeyID == id })
}

// fits reports whether a key may verify an algorithm's signatures. Symmetric keys fit none.
func fits(k jose.JSONWebKey, algorithm string) bool {
	if k.Algorithm != "" && k.Algorithm != algorithm || k.Use != "" && k.Use != "sig" {
		return false
	}
	switch key := k.Key.(type) {
	case *rsa.PublicKey:
		return algorithm == string(jose.RS256) && key.N.BitLen() >= minRSABits
	case *ecdsa.PublicKey:
		return algorithm == string(jose.ES256) && key.Curve == elliptic.P256()
	case ed25519.PublicKey:
		return algorithm == string(jose.EdDSA)
	default:
		return false
	}
}

// renew fetches the keys unless the last fetch is too recent. Concurrent callers share one fetch.
func (k *issuerKeys) renew() {
	_, err, _ := k.fetches.Do("", func() (any, error) {
		if !k.mayFetch() {
			return nil, nil //nolint:nilnil // nothing to return
		}
		err := k.fetch()
		k.count(err)
		return nil, err
	})
	if err != nil {
		k.log.Warn("issuer's keys can't be fetched: the last ones are used; check the network",
			"host", k.host, "err", err)
	}
}

// mayFetch reports whether a fetch may begin now. If so, it counts as begun: tried becomes now.
func (k *issuerKeys) mayFetch() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	if now.Sub(k.tried) < keysPause {
		return false
	}
	k.tried = now
	return true
}

// fetch replaces the ring where the issuer's keys have changed. The client has a timeout. No
// caller's context ends it, because other callers share it.
func (k *issuerKeys) fetch() error {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, k.url, http.NoBody)
	if err != nil {
		return fmt.Errorf("fetch the keys: %w", err)
	}
	res, err := k.client.Do(req)
	if err != nil {
		return fmt.Errorf("fetch the keys: %w", err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxKeysBytes))
	if err != nil {
		return fmt.Errorf("fetch the keys at %s: %w", k.url, err)
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("fetch the keys at %s: status %s", k.url, res.Status)
	}
	if old := k.ring.Load(); old != nil && bytes.Equal(old.text, text) {
		return nil
	}
	keys, err := decodeKeys(text)
	if err != nil {
		return fmt.Errorf("decode the keys at %s: %w", k.url, err)
	}
	k.ring.Store(&keyRing{text: text, keys: keys})
	return nil
}

// decodeKeys decodes a set of keys without those that the library can't decode, such as those of an
// unknown type (RFC 7517, 5). The library would refuse the whole set for one of them.
func decodeKeys(text []byte) (keys []jose.JSONWebKey, err error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(text, &set); err != nil {
		return nil, err
	}
	if set.Keys == nil {
		return nil, errNoKeySet
	}
	for _, raw := range set.Keys {
		var key jose.JSONWebKey
		if json.Unmarshal(raw, &key) == nil {
			keys = append(keys, key)
		}
	}
	return keys, nil
}
