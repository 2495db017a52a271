// Package ordersn makes and verifies random paths and the order numbers that belong to them.
//
// A path is 32 lower-case hex digits: 128 bits that verify without a lookup.
//
//	20 bits  time of issue, seconds modulo 2^20 (12 days)
//	24 bits  nonce: milliseconds of that second, and a counter of the node
//	84 bits  MAC: truncated HMAC-MD5 of goods, buyer, the whole time of issue, and nonce
//
// The order number of a path is 35 digits of base 62: the whole time of issue in milliseconds, the
// goods id, counter and MAC. So one path has one number on every node and for ever, numbers sort by time, and a number
// carries its goods, which is the shard key. Only its buyer's id verifies it.
//
// RFC 6151 keeps HMAC-MD5 for such use: the known collisions of MD5 do not help to forge a MAC.
//
// The package imports nothing of the project. All of it is safe for concurrent use.
package ordersn

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

const (
	// Len is the length of every order number, in characters.
	Len = 35
	// PathLen is the length of every path, in hex digits.
	PathLen = 32
	// PathTTL is how long a path permits a purchase.
	PathTTL = time.Minute
)

// ErrForeign means that a string is no path or order number of this service for this buyer.
var ErrForeign = errors.New("not a path or order number of this service")

const (
	firstSecond = 1_735_689_600 // 2025-01-01T00:00:00Z: the zero of a number's time
	timeBits    = 20            // of a path
	counterBits = 14            // of a nonce
	millisBits  = 10            // of a nonce, above its counter
	nonceBits   = millisBits + counterBits
	highBits    = 20 // of a MAC, above its last 64
	// maxAge is how many periods of a path's time are tried: a path older than a year is unknown.
	maxAge = 32
	// aheadSeconds is how far the clocks of two nodes may differ.
	aheadSeconds = 3600
)

// Number is what a path and its order number carry.
type Number struct {
	GoodsID int64
	// Epoch is the epoch of a number that an earlier release made, else 0.
	Epoch int64

	second int64 // Unix time of issue
	nonce  uint64
	high   uint64 // of the MAC
	low    uint64
	legacy uuid.UUID
}

// IssuedAt returns the time of issue, in milliseconds.
func (n Number) IssuedAt() time.Time {
	return time.UnixMilli(n.second*1000 + int64(n.nonce>>counterBits)).UTC()
}

// ExpiresAt returns the time from which the path permits no purchase.
func (n Number) ExpiresAt() time.Time { return time.Unix(n.second, 0).Add(PathTTL).UTC() }

// ID returns a UUIDv7 that is always the same for an order number. Any other text has a new one.
func ID(sn string) uuid.UUID {
	n, ok := parse(sn)
	if !ok {
		return legacyID(sn)
	}
	var id uuid.UUID
	binary.BigEndian.PutUint64(id[:], uint64(n.IssuedAt().UnixMilli())<<16|0x7000|n.high>>8)
	binary.BigEndian.PutUint64(id[8:], n.low>>2|1<<63)
	return id
}

// Path returns the random path.
func (n Number) Path() string {
	var b [16]byte
	period := uint64(n.second) & (1<<timeBits - 1)
	binary.BigEndian.PutUint64(b[:], (period<<nonceBits|n.nonce)<<highBits|n.high)
	binary.BigEndian.PutUint64(b[8:], n.low)
	return hex.EncodeToString(b[:])
}

// Of the four groups of a number the first three have 59 bits and 10 digits, the last 25 bits and 5.
const (
	groupBits  = 59
	lastBits   = 25
	goodsSplit = 45 // bits of the goods id in the second group; the first has the time before it
)

// String returns the order number.
func (n Number) String() string {
	goods := uint64(n.GoodsID)
	b := make([]byte, 0, Len)
	millis := uint64(n.second-firstSecond)<<millisBits | n.nonce>>counterBits
	b = appendDigits(b, millis<<(63-goodsSplit)|goods>>goodsSplit, 10)
	b = appendDigits(b, goods&(1<<goodsSplit-1)<<counterBits|n.nonce&(1<<counterBits-1), 10)
	b = appendDigits(b, n.high<<(64-lastBits)|n.low>>lastBits, 10)
	b = appendDigits(b, n.low&(1<<lastBits-1), 5)
	return string(b)
}

// parse decodes the form of an order number, without its MAC.
func parse(s string) (n Number, ok bool) {
	if len(s) != Len {
		return n, false
	}
	var group [4]uint64
	for i := range group {
		bits, digits := groupBits, s[10*i:min(10*i+10, Len)]
		if i == len(group)-1 {
			bits = lastBits
		}
		if group[i], ok = readDigits(digits); !ok || group[i]>>bits != 0 {
			return n, false
		}
	}
	millis := group[0] >> (63 - goodsSplit)
	n.second = firstSecond + int64(millis>>millisBits)
	n.GoodsID = int64(group[0]&(1<<(63-goodsSplit)-1)<<goodsSplit | group[1]>>counterBits)
	n.nonce = millis&(1<<millisBits-1)<<counterBits | group[1]&(1<<counterBits-1)
	n.high, n.low = group[2]>>(64-lastBits), group[2]<<lastBits|group[3]
	return n, true
}

// The digits are in the order of their bytes, so that numbers sort by time.
const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

func appendDigits(b []byte, x uint64, count int) []byte {
	b = b[:len(b)+count]
	for i := len(b) - 1; count > 0; i, count = i-1, count-1 {
		b[i] = digits[x%62]
		x /= 62
	}
	return b
}

func readDigits(s string) (x uint64, ok bool) {
	for _, c := range []byte(s) {
		switch {
		case c >= '0' && c <= '9':
			x = x*62 + uint64(c-'0')
		case c >= 'A' && c <= 'Z':
			x = x*62 + uint64(c-'A') + 10
		case c >= 'a' && c <= 'z':
			x = x*62 + uint64(c-'a') + 36
		default:
			return 0, false
		}
	}
	return x, true
}

// FirstAt returns a text that sorts before the numbers that are issued from a time on, and after
// those before.
func FirstAt(t time.Time) string { return Number{second: t.Unix()}.String() }

// Keys make and verify paths and numbers. Every process of an installation shares the secrets.
type Keys struct {
	keys    [][]byte // the first signs, all verify
	legacy  []legacyKey
	counter atomic.Uint64
}

// NewKeys derives the keys from the secrets, of which there must be one.
func NewKeys(secrets ...[]byte) *Keys {
	k := &Keys{}
	k.counter.Store(rand.Uint64()) // so that two nodes do not count alike
	for _, secret := range secrets {
		k.keys = append(k.keys, derive(secret, "flashsale random path"))
		k.legacy = append(k.legacy, legacyKey(derive(secret, "flashsale order number")))
	}
	return k
}

func derive(secret []byte, purpose string) []byte {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(purpose))
	return mac.Sum(nil)
}

// Issue returns a new number for a goods id > 0, with its path.
func (k *Keys) Issue(goodsID, buyerID int64, now time.Time) Number {
	count := k.counter.Add(1) & (1<<counterBits - 1)
	millis := uint64(now.Nanosecond() / int(time.Millisecond))
	n := Number{GoodsID: goodsID, second: now.Unix(), nonce: millis<<counterBits | count}
	n.high, n.low = sign(k.keys[0], n, buyerID)
	return n
}

// VerifyPath returns the number of a buyer's path to a goods, or ErrForeign. The number may have
// expired.
func (k *Keys) VerifyPath(path string, goodsID, buyerID int64, now time.Time) (Number, error) {
	var b [PathLen / 2]byte
	if len(path) != PathLen {
		return Number{}, ErrForeign
	}
	if _, err := hex.Decode(b[:], []byte(path)); err != nil {
		return Number{}, ErrForeign
	}
	first, low := binary.BigEndian.Uint64(b[:]), binary.BigEndian.Uint64(b[8:])
	n := Number{GoodsID: goodsID, nonce: first >> highBits & (1<<nonceBits - 1),
		high: first & (1<<highBits - 1), low: low}
	latest := now.Unix() + aheadSeconds
	n.second = latest - (latest-int64(first>>(nonceBits+highBits)))&(1<<timeBits-1)
	for range maxAge {
		if k.verifies(n, buyerID) && n.Path() == path {
			return n, nil
		}
		n.second -= 1 << timeBits
	}
	return Number{}, ErrForeign
}

// Verify returns the content of a buyer's order number, or ErrForeign.
func (k *Keys) Verify(sn string, buyerID int64) (Number, error) {
	n, err := k.Parse(sn)
	if err == nil && n.legacy == (uuid.UUID{}) && !k.verifies(n, buyerID) {
		err = ErrForeign
	}
	return n, err
}

// Parse returns the content of an order number whose buyer is unknown. It verifies only numbers of
// earlier releases: those of this one may be invented.
func (k *Keys) Parse(sn string) (Number, error) {
	if n, ok := parse(sn); ok && n.GoodsID > 0 {
		return n, nil
	}
	for _, key := range k.legacy {
		if n, ok := key.parse(sn); ok {
			return n, nil
		}
	}
	return Number{}, ErrForeign
}

func (k *Keys) verifies(n Number, buyerID int64) bool {
	ok := false
	for _, key := range k.keys {
		high, low := sign(key, n, buyerID)
		ok = ok || (high^n.high)|(low^n.low) == 0
	}
	return ok
}

func sign(key []byte, n Number, buyerID int64) (high, low uint64) {
	var b [32]byte
	binary.BigEndian.PutUint64(b[0:], uint64(n.GoodsID))
	binary.BigEndian.PutUint64(b[8:], uint64(buyerID))
	binary.BigEndian.PutUint64(b[16:], uint64(n.second))
	binary.BigEndian.PutUint64(b[24:], n.nonce)
	mac := hmac.New(md5.New, key)
	mac.Write(b[:])
	sum := mac.Sum(b[:0])
	return binary.BigEndian.Uint64(sum) >> (64 - highBits), binary.BigEndian.Uint64(sum[8:])
}
