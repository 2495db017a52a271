package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"flashsale.dev/seckill/internal/config"
)

// secretOf is the secret that was set, or one made up for this data directory and kept in it: tokens and order numbers
// must be good after a restart too.
func secretOf(dir string, set config.Secret) (config.Secret, error) {
	if set != "" {
		return set, nil
	}
	name := filepath.Join(dir, "jwt-secret")
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		made := rand.Text() + rand.Text()
		if err := os.WriteFile(name, []byte(made), 0o600); err != nil {
			return "", fmt.Errorf("keep the secret that was made up: %w", err)
		}
		return config.Secret(made), nil
	}
	if err != nil {
		return "", fmt.Errorf("read the secret: %w", err)
	}
	return config.Secret(text), nil
}
