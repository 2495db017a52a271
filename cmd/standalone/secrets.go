package main

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"flashsale.dev/seckill/internal/auth"
	"flashsale.dev/seckill/internal/config"
)

// fillSecrets generates the secrets that are not set, and keeps them in the data directory. Tokens,
// order numbers and phone numbers must stay valid after a restart. Generated secrets make the first
// start work without settings, and the files are readable by their owner alone.
func fillSecrets(dir string, secrets *config.Auth) error {
	for _, s := range []struct {
		file  string
		set   *config.Secret
		make  func() string
		valid func(text string) bool
	}{
		{"jwt-secret", &secrets.JWTSecret, secretText, isSecret},
		{"payment-secret", &secrets.PaymentSecret, secretText, isSecret},
		{"phone-keys", &secrets.PhoneKeys, phoneKey, isPhoneKeys},
	} {
		made, err := secretOf(filepath.Join(dir, s.file), *s.set, s.make, s.valid)
		if err != nil {
			return err
		}
		*s.set = made
	}
	return nil
}

// secretOf returns the secret that is set, or the one in the file. It creates a missing file. An
// unreadable or damaged file is an error: a new secret in its place would invalidate every token
// and order number.
func secretOf(
	file string, set config.Secret, makeOne func() string, valid func(text string) bool,
) (config.Secret, error) {
	if set != "" {
		return set, nil
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		generated := makeOne()
		if err := writeSecret(file, generated); err != nil {
			return "", fmt.Errorf("write the generated secret %s: %w", file, err)
		}
		return config.Secret(generated), nil
	}
	if err != nil {
		return "", fmt.Errorf("read the secret %s: %w", file, err)
	}
	if !valid(string(text)) {
		return "", fmt.Errorf("the secret %s is empty or damaged: restore the file from a backup, "+
			"or delete it and a new one is generated, which ends what the old one signed", file)
	}
	return config.Secret(text), nil
}

// isSecret reports whether a file's text is long enough for a secret that signs.
func isSecret(text string) bool { return len(strings.TrimSpace(text)) >= auth.MinSecret }

// isPhoneKeys reports whether a file's text is a list of keys of phone numbers.
func isPhoneKeys(text string) bool {
	keys, err := auth.ParsePhoneKeys(text)
	return len(keys) > 0 && err == nil
}

// writeSecret writes a file that is complete on the disk, or does not exist. A start on a full disk
// would otherwise leave an empty file, and a power failure would lose the secret of stored orders.
func writeSecret(file, text string) error {
	// Only its owner may read a file of CreateTemp.
	f, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+"-*")
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// secretText returns a random secret. Each rand.Text has at least 128 bits, so it has the 256 bits
// that HMAC-SHA256 can use.
func secretText() string { return rand.Text() + rand.Text() }

// phoneKey returns a random key with id 1. The id lets an operator add a second key later and keep
// this one for old phone numbers.
func phoneKey() string {
	key := make([]byte, auth.PhoneKeyBytes)
	_, _ = rand.Read(key) // crypto/rand never returns an error
	return "1:" + base64.StdEncoding.EncodeToString(key)
}
