package waitingroom

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
)

// Seed is the secret of a draw until the start of the sale, and public afterwards.
type Seed [32]byte

// errBadSeed means that a text is not 64 hex digits.
var errBadSeed = errors.New("a seed has 64 hex digits")

// NewSeed returns a random seed.
func NewSeed() Seed {
	var s Seed
	_, _ = rand.Read(s[:]) // crypto/rand ends the process rather than return an error
	return s
}

// ParseSeed reads what Hex wrote. The error is errBadSeed.
func ParseSeed(text string) (Seed, error) {
	var s Seed
	if len(text) != hex.EncodedLen(len(s)) {
		return Seed{}, errBadSeed
	}
	if _, err := hex.Decode(s[:], []byte(text)); err != nil {
		return Seed{}, errBadSeed
	}
	return s, nil
}

// Hex returns the seed as 64 lower-case hex digits. They are secret until the draw.
func (s Seed) Hex() string { return hex.EncodeToString(s[:]) }

// String hides the seed from logs.
func (s Seed) String() string { return "***" }

// Commitment returns the SHA-256 of the seed's 32 bytes, as 64 lower-case hex digits.
func (s Seed) Commitment() string {
	sum := sha256.Sum256(s[:])
	return hex.EncodeToString(sum[:])
}
