package ordersn

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"time"
)

// legacyKey verifies the numbers of the releases before random paths were numbers. They are 58
// characters of base32hex: a UUIDv7, the goods id, the epoch of the reservation, and 8 bytes of
// HMAC-SHA256. Nothing makes them any more.
type legacyKey []byte

const (
	legacyBody = 16 + 8 + 4
	legacyLen  = 58 // characters
)

var legacyEncoding = base32.NewEncoding("0123456789abcdefghijklmnopqrstuv").
	WithPadding(base32.NoPadding)

func (k legacyKey) parse(s string) (n Number, ok bool) {
	if len(s) != legacyLen {
		return n, false
	}
	raw, err := legacyEncoding.DecodeString(s)
	if err != nil || len(raw) != legacyBody+8 || legacyEncoding.EncodeToString(raw) != s {
		return n, false
	}
	mac := hmac.New(sha256.New, k)
	mac.Write(raw[:legacyBody])
	if !hmac.Equal(mac.Sum(nil)[:8], raw[legacyBody:]) {
		return n, false
	}
	n = numberAt(time.UnixMilli(int64(binary.BigEndian.Uint64(raw)>>16)), 0)
	n.GoodsID = int64(binary.BigEndian.Uint64(raw[16:]))
	n.Epoch = int64(binary.BigEndian.Uint32(raw[24:]))
	return n, true
}
