package main

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"flashsale.dev/seckill/internal/auth"
	"flashsale.dev/seckill/internal/config"
)

// makeUp fills in the secrets that were not set with ones made up for this data directory and kept in it: tokens, order
// numbers and phone numbers must be good after a restart too.
func makeUp(dir string, secrets *config.Auth) error {
	for _, s := range []struct {
		file string
		set  *config.Secret
		make func() string
	}{
		{"jwt-secret", &secrets.JWTSecret, secretText},
		{"payment-secret", &secrets.PaymentSecret, secretText},
		{"phone-keys", &secrets.PhoneKeys, phoneKey},
	} {
		made, err := secretOf(filepath.Join(dir, s.file), *s.set, s.make)
		if err != nil {
			return err
		}
		*s.set = made
	}
	return nil
}

// secretOf is the secret that was set, or the one in the file, which is made up where it is not there.
func secretOf(file string, set config.Secret, makeOne func() string) (config.Secret, error) {
	if set != "" {
		return set, nil
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		made := makeOne()
		if err := os.WriteFile(file, []byte(made), 0o600); err != nil {
			return "", fmt.Errorf("keep a secret that was made up: %w", err)
		}
		return config.Secret(made), nil
	}
	if err != nil {
		return "", fmt.Errorf("read a secret: %w", err)
	}
	return config.Secret(text), nil
}

func secretText() string { return rand.Text() + rand.Text() }

func phoneKey() string {
	key := make([]byte, auth.PhoneKeyBytes)
	_, _ = rand.Read(key) // never fails: crypto/rand ends the program rather than return an error
	return "1:" + base64.StdEncoding.EncodeToString(key)
}
