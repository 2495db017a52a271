package ordersn

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"

	"github.com/google/uuid"
)

// legacyKey verifies the numbers of the releases before random paths were numbers: 58 characters of
// base32hex that carry a UUIDv7, the goods id, the epoch of the reservation, and 8 bytes of
// HMAC-SHA256. Nothing makes them any more.
type legacyKey []byte

const legacyBody = 16 + 8 + 4

var legacyEncoding = base32.NewEncoding("0123456789abcdefghijklmnopqrstuv").
	WithPadding(base32.NoPadding)

// legacyID returns the UUIDv7 in a number, without a check of the MAC.
func legacyID(s string) uuid.UUID {
	if raw, err := legacyEncoding.DecodeString(s); err == nil && len(raw) == legacyBody+8 {
		return uuid.UUID(raw[:16])
	}
	return uuid.Must(uuid.NewV7())
}

func (k legacyKey) parse(s string) (n Number, ok bool) {
	raw, err := legacyEncoding.DecodeString(s)
	if err != nil || len(raw) != legacyBody+8 || legacyEncoding.EncodeToString(raw) != s {
		return n, false
	}
	mac := hmac.New(sha256.New, k)
	mac.Write(raw[:legacyBody])
	if !hmac.Equal(mac.Sum(nil)[:8], raw[legacyBody:]) {
		return n, false
	}
	n = Number{
		GoodsID: int64(binary.BigEndian.Uint64(raw[16:])),
		Epoch:   int64(binary.BigEndian.Uint32(raw[24:])), legacy: uuid.UUID(raw[:16]),
	}
	second, nanos := n.legacy.Time().UnixTime()
	n.second, n.nonce = second, uint64(nanos/1_000_000)<<counterBits
	return n, true
}
