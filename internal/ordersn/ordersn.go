// Package ordersn makes and reads order numbers.
//
// A number is 58 characters of [0-9a-v]: the base32hex form (RFC 4648, lower case, no padding) of
//
//	16 bytes  UUIDv7 (RFC 9562): unique without coordination, and sorted by time
//	 8 bytes  goods id
//	 4 bytes  epoch of the goods' state in Redis when the number was made
//	 8 bytes  MAC: truncated HMAC-SHA256 of the 28 bytes before it
//
// Buyers treat it as opaque. The service reads from it the goods id, which is the shard key, and
// the epoch of the reservation. The MAC detects forged numbers without a call to a database.
// base32hex keeps the order of the bytes, so numbers sort by time.
//
// The package imports nothing of the project. All of it is safe for concurrent use.
package ordersn

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// Len is the length of every order number, in characters.
const Len = 58

const (
	macSize  = 8
	bodySize = 16 + 8 + 4
)

// ErrForeign means that a string is no order number of this service: its form or MAC is wrong.
var ErrForeign = errors.New("not an order number of this service")

var encoding = base32.NewEncoding("0123456789abcdefghijklmnopqrstuv").WithPadding(base32.NoPadding)

// Number is the content of an order number.
type Number struct {
	ID      uuid.UUID
	GoodsID int64
	Epoch   int64
}

// MadeAt returns the time of Mint by the clock of its node, in milliseconds.
func (n Number) MadeAt() time.Time {
	sec, nsec := n.ID.Time().UnixTime()
	return time.Unix(sec, nsec).UTC()
}

// Minter makes and checks numbers under one secret. Every process of an installation shares the
// secret. A changed secret invalidates all earlier numbers.
type Minter struct{ key []byte }

// NewMinter derives the minter's own key from the secret, which must not be empty.
func NewMinter(secret []byte) *Minter {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte("flashsale order number"))
	return &Minter{key: mac.Sum(nil)}
}

// Mint returns a new number for a goods id > 0 and an epoch from 0 to 2^32-1. It fails only if the
// system's random source fails.
func (m *Minter) Mint(goodsID, epoch int64) (string, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return "", fmt.Errorf("make an order number: %w", err)
	}
	return m.encode(Number{ID: id, GoodsID: goodsID, Epoch: epoch}), nil
}

// Parse decodes a number and checks its MAC in constant time. It returns ErrForeign for every
// string that Mint can't return, including other values of the last character's unused bits.
func (m *Minter) Parse(s string) (Number, error) {
	if len(s) != Len {
		return Number{}, ErrForeign
	}
	raw, err := encoding.DecodeString(s)
	if err != nil || len(raw) != bodySize+macSize {
		return Number{}, ErrForeign
	}
	n := Number{
		ID:      uuid.UUID(raw[:16]),
		GoodsID: int64(binary.BigEndian.Uint64(raw[16:24])),
		Epoch:   int64(binary.BigEndian.Uint32(raw[24:28])),
	}
	if !hmac.Equal([]byte(m.encode(n)), []byte(s)) {
		return Number{}, ErrForeign
	}
	return n, nil
}

// ID returns a number's UUID without a check of the MAC; false if the string is no number.
func ID(s string) (uuid.UUID, bool) {
	raw, err := encoding.DecodeString(s)
	if err != nil || len(raw) != bodySize+macSize {
		return uuid.UUID{}, false
	}
	return uuid.UUID(raw[:16]), true
}

// encode returns the text of a number with its MAC.
func (m *Minter) encode(n Number) string {
	raw := make([]byte, bodySize, bodySize+sha256.Size)
	copy(raw, n.ID[:])
	binary.BigEndian.PutUint64(raw[16:], uint64(n.GoodsID))
	binary.BigEndian.PutUint32(raw[24:], uint32(n.Epoch))
	mac := hmac.New(sha256.New, m.key)
	mac.Write(raw)
	return encoding.EncodeToString(mac.Sum(raw)[:bodySize+macSize])
}
