// Package ordersn makes and verifies random paths and the order numbers that belong to them.
//
// A path is 32 lower-case hex digits: 128 bits that verify without a lookup.
//
//	20 bits  time of issue, seconds modulo 2^20 (12 days)
//	24 bits  nonce: milliseconds of that second, and a counter of the node
//	84 bits  MAC: truncated HMAC-MD5 of goods, buyer, the whole time of issue, and nonce
//
// The order number of a path is 35 digits of base 62: the period of the time of issue, the path,
// and the goods id. So one path has one number on every node and for ever. Numbers sort by time. A
// number contains its goods, which is the shard key. Only its buyer's id verifies it.
//
// RFC 6151 keeps HMAC-MD5 for such use: the known collisions of MD5 do not help to forge a MAC.
//
// The package imports nothing of the project but userid. All of it is safe for concurrent use.
package ordersn

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"flashsale.dev/seckill/internal/userid"
)

const (
	// Len is the length of every order number, in characters.
	Len = 35
	// pathLen is the length of every path, in hex digits.
	pathLen = 32
	// PathTTL is how long a path permits a purchase.
	PathTTL = time.Minute
)

// errForeign means that a string is no path or order number of this service for this buyer.
var errForeign = errors.New("not a path or order number of this service")

const (
	// From the left, a path's first 8 bytes have this many bits of seconds, milliseconds, counter
	// and MAC.
	secondBits, milliBits, counterBits, macBits = 20, 10, 14, 20
	// maxAge is how many periods are tried: a path older than 382 days is unknown.
	maxAge = 32
)

// Number is the content of a path and its order number.
type Number struct {
	GoodsID int64
	// Epoch is the epoch of a number that an earlier release made, else 0.
	Epoch int64

	period uint16 // of 2^20 seconds, in which it was issued
	path   [pathLen / 2]byte
}

// numberAt returns a number of a time, without goods and MAC.
func numberAt(t time.Time, count uint64) (n Number) {
	second, ms := uint64(t.Unix()), uint64(t.Nanosecond())/uint64(time.Millisecond)
	n.period = uint16(second >> secondBits)
	nonce := (second<<milliBits|ms)<<counterBits | count
	binary.BigEndian.PutUint64(n.path[:], nonce<<macBits) // the shift drops the period
	return n
}

// IssuedAt returns the time of issue, in milliseconds.
func (n Number) IssuedAt() time.Time {
	seconds := binary.BigEndian.Uint64(n.path[:]) >> (macBits + counterBits)
	ms := time.Duration(seconds & (1<<milliBits - 1))
	second := int64(n.period)<<secondBits | int64(seconds>>milliBits)
	return time.Unix(second, int64(ms*time.Millisecond)).UTC()
}

// ExpiresAt returns the time from which the path permits no purchase.
func (n Number) ExpiresAt() time.Time { return n.IssuedAt().Add(PathTTL) }

// ID returns a UUIDv7 that is always the same for an order number. Its time is the time of issue. A
// number of an earlier release has one in it, which that release used.
func ID(sn string) uuid.UUID {
	if raw, err := legacyEncoding.DecodeString(sn); err == nil && len(sn) == legacyLen {
		return uuid.UUID(raw[:16])
	}
	n, _ := parse(sn)
	return IDAt(n.IssuedAt(), []byte(sn))
}

// IDAt returns a UUIDv7 that is always the same for a text and a time.
func IDAt(at time.Time, text []byte) uuid.UUID {
	id := uuid.UUID(md5.Sum(text))
	ms := uint64(at.UnixMilli())
	binary.BigEndian.PutUint64(id[:], ms<<16|uint64(id[6])<<8|uint64(id[7]))
	id[6], id[8] = 0x70|id[6]&0x0f, 0x80|id[8]&0x3f
	return id
}

// Path returns the random path.
func (n Number) Path() string { return hex.EncodeToString(n.path[:]) }

// String returns the order number.
func (n Number) String() string {
	var b [numberBytes]byte
	binary.BigEndian.PutUint16(b[:], n.period)
	copy(b[2:], n.path[:])
	binary.BigEndian.PutUint64(b[numberBytes-8:], uint64(n.GoodsID))
	return encode62(b)
}

// parse decodes the form of an order number, without its MAC.
func parse(s string) (n Number, ok bool) {
	b, ok := decode62(s)
	n.period = binary.BigEndian.Uint16(b[:])
	copy(n.path[:], b[2:])
	n.GoodsID = int64(binary.BigEndian.Uint64(b[numberBytes-8:]))
	return n, ok && n.GoodsID > 0
}

// FirstAt returns a text that sorts before the numbers that are issued from a time on, and after
// those before.
func FirstAt(t time.Time) string { return numberAt(t, 0).String() }

// Keys make and verify paths and numbers. Every process of an installation shares the secrets.
type Keys struct {
	keys    []*pathKey // the first signs, all verify
	legacy  []legacyKey
	counter atomic.Uint64
}

// NewKeys derives the keys from the secrets, of which there must be one.
func NewKeys(secrets ...[]byte) *Keys {
	k := &Keys{}
	k.counter.Store(rand.Uint64()) // so that two nodes do not count alike
	for _, secret := range secrets {
		k.keys = append(k.keys, newPathKey(Derive(secret, "flashsale random path")))
		k.legacy = append(k.legacy, legacyKey(Derive(secret, "flashsale order number")))
	}
	return k
}

// pathKey keeps states of HMAC that have hashed the key.
type pathKey struct{ macs sync.Pool }

// pathMAC is a state with room for what it hashes, and for its sum.
type pathMAC struct {
	hash.Hash
	room [96]byte
}

func newPathKey(key []byte) *pathKey {
	return &pathKey{sync.Pool{New: func() any { return &pathMAC{Hash: hmac.New(md5.New, key)} }}}
}

// Derive returns a secret for another purpose, by HMAC-SHA256. It does not disclose the one that it
// is made from.
func Derive(secret []byte, purpose string) []byte {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(purpose))
	return mac.Sum(nil)
}

// Issue returns a new number for a goods id > 0, with its path.
func (k *Keys) Issue(goodsID int64, buyerID string, now time.Time) Number {
	n := numberAt(now, k.counter.Add(1)&(1<<counterBits-1))
	n.GoodsID = goodsID
	return n.signed(k.keys[0], buyerID)
}

// VerifyPath returns the number of a buyer's path to a goods, or errForeign. The number may have
// expired. now only chooses the period of the time of issue, and may be wrong by days.
func (k *Keys) VerifyPath(
	path string, goodsID int64, buyerID string, now time.Time,
) (Number, error) {
	if !IsPath(path) {
		return Number{}, errForeign
	}
	n := Number{GoodsID: goodsID}
	_, _ = hex.Decode(n.path[:], []byte(path)) // which IsPath has checked
	latest, second := now.Unix()+1<<(secondBits-1), n.IssuedAt().Unix()
	n.period = uint16((latest - second) >> secondBits)
	for range maxAge {
		if k.verifies(n, buyerID) {
			return n, nil
		}
		n.period--
	}
	return Number{}, errForeign
}

// IsPath reports whether a string is 32 lower-case hex digits.
func IsPath(s string) bool {
	return len(s) == pathLen && strings.Trim(s, "0123456789abcdef") == ""
}

// Verify returns the content of a buyer's order number, or errForeign.
func (k *Keys) Verify(sn string, buyerID string) (Number, error) {
	n, err := k.Parse(sn)
	if err == nil && n.Epoch == 0 && !k.verifies(n, buyerID) {
		err = errForeign
	}
	return n, err
}

// Parse returns the content of an order number whose buyer is unknown. It verifies only numbers of
// earlier releases: those of this one may be invented.
func (k *Keys) Parse(sn string) (Number, error) {
	if n, ok := parse(sn); ok {
		return n, nil
	}
	for _, key := range k.legacy {
		if n, ok := key.parse(sn); ok {
			return n, nil
		}
	}
	return Number{}, errForeign
}

func (k *Keys) verifies(n Number, buyerID string) bool {
	return slices.ContainsFunc(k.keys, func(key *pathKey) bool {
		signed := n.signed(key, buyerID)
		return hmac.Equal(signed.path[:], n.path[:])
	})
}

// signed returns the number with the MAC of a key for a buyer: all of the path but its first 44
// bits.
func (n Number) signed(key *pathKey, buyerID string) Number {
	mac := key.macs.Get().(*pathMAC)
	defer key.macs.Put(mac)
	b := binary.BigEndian.AppendUint64(mac.room[:0], uint64(n.GoodsID))
	b = userid.AppendSigned(b, buyerID)
	b = binary.BigEndian.AppendUint16(b, n.period)
	mac.Reset()
	mac.Write(append(append(b, n.path[:5]...), n.path[5]&0xf0))
	sum := mac.Sum(mac.room[:0])
	n.path[5] = n.path[5]&0xf0 | sum[5]&0x0f
	copy(n.path[6:], sum[6:])
	return n
}
