package main

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"

	"github.com/go-jose/go-jose/v3"
)

// keys are the published keys, the newest first, which signs.
type keys struct {
	mu  sync.Mutex
	all []jose.JSONWebKey
}

// rotate makes a new key of an algorithm the newest, and keeps the former ones or withdraws them.
func (k *keys) rotate(algorithm string, keep bool) error {
	var private crypto.Signer
	var err error
	switch algorithm {
	case "RS256":
		private, err = rsa.GenerateKey(rand.Reader, 2048)
	case "ES256":
		private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "EdDSA":
		_, private, err = ed25519.GenerateKey(rand.Reader)
	default:
		err = fmt.Errorf("unknown algorithm %q", algorithm)
	}
	if err != nil {
		return err
	}
	made := jose.JSONWebKey{Key: private, KeyID: rand.Text(), Algorithm: algorithm, Use: "sig"}
	k.mu.Lock()
	defer k.mu.Unlock()
	if !keep {
		k.all = nil
	}
	k.all = append([]jose.JSONWebKey{made}, k.all...)
	return nil
}

// newest returns the key that signs.
func (k *keys) newest() jose.JSONWebKey {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.all[0]
}

// private returns the newest key for fosite.
func (k *keys) private(context.Context) (any, error) {
	key := k.newest()
	return &key, nil
}

// serve publishes the public keys.
func (k *keys) serve(w http.ResponseWriter, _ *http.Request) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var set jose.JSONWebKeySet
	for _, key := range k.all {
		set.Keys = append(set.Keys, key.Public())
	}
	reply(w, set)
}

// sign signs claims with the newest key.
func (k *keys) sign(claims map[string]any) (string, error) {
	key := k.newest()
	signer, err := jose.NewSigner(jose.SigningKey{
		Algorithm: jose.SignatureAlgorithm(key.Algorithm), Key: key,
	}, nil)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	signed, err := signer.Sign(text)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}
