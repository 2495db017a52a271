// Package ordersn makes and verifies random paths and the order numbers that belong to them.
//
// A path is 32 lower-case hex digits: 128 bits that verify without a lookup.
//
//	20 bits  time of issue, seconds modulo 2^20 (12 days)
//	24 bits  nonce: milliseconds of that second, and a counter of the node
//	84 bits  MAC: truncated HMAC-MD5 of goods, buyer, the whole time of issue, and nonce
//
// The order number of a path is 35 digits of base 62: the whole time of issue, the goods id,
// counter and MAC. So one path has one number on every node and for ever, numbers sort by time, and
// a number carries its goods, which is the shard key. Only its buyer's id verifies it.
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
	"math/big"
	"math/rand/v2"
	"strings"
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
	numberBytes = 26 // 62^35 is a little more than 2^208
	timeBits    = 20 // of a path
	millisBits  = 10 // of a path
	counterBits = 14
	highBits    = 20 // of a MAC, above its last 64
	// maxAge is how many periods of a path's time are tried: a path older than a year is unknown.
	maxAge = 32
)

// Number is what a path and its order number carry.
type Number struct {
	GoodsID int64
	// Epoch is the epoch of a number that an earlier release made, else 0.
	Epoch int64

	millis  uint64 // Unix time of issue
	counter uint64
	high    uint64 // of the MAC
	low     uint64
	legacy  bool // an earlier release made it
}

// IssuedAt returns the time of issue, in milliseconds.
func (n Number) IssuedAt() time.Time { return time.UnixMilli(int64(n.millis)).UTC() }

// ExpiresAt returns the time from which the path permits no purchase.
func (n Number) ExpiresAt() time.Time { return n.IssuedAt().Add(PathTTL) }

// ID returns a UUIDv7 that is always the same for an order number. Its time is the time of issue, or
// 1970 where an earlier release made the number.
func ID(sn string) uuid.UUID {
	n, _ := parse(sn)
	id := uuid.UUID(md5.Sum([]byte(sn)))
	id[6], id[8] = 0x70|id[6]&0x0f, 0x80|id[8]&0x3f
	rest := uint64(binary.BigEndian.Uint16(id[6:]))
	binary.BigEndian.PutUint64(id[:], n.millis<<16|rest)
	return id
}

// Path returns the random path.
func (n Number) Path() string {
	var b [PathLen / 2]byte
	second, ms := n.millis/1000&(1<<timeBits-1), n.millis%1000
	nonce := (second<<millisBits|ms)<<counterBits | n.counter
	binary.BigEndian.PutUint64(b[:], nonce<<highBits|n.high)
	binary.BigEndian.PutUint64(b[8:], n.low)
	return hex.EncodeToString(b[:])
}

// String returns the order number.
func (n Number) String() string {
	var b [numberBytes]byte
	binary.BigEndian.PutUint64(b[0:], n.millis<<highBits|n.high)
	binary.BigEndian.PutUint64(b[8:], uint64(n.GoodsID))
	binary.BigEndian.PutUint64(b[16:], n.low)
	binary.BigEndian.PutUint16(b[24:], uint16(n.counter))
	digits := swapCase(new(big.Int).SetBytes(b[:]).Text(62))
	return strings.Repeat("0", Len-len(digits)) + digits
}

// parse decodes the form of an order number, without its MAC.
func parse(s string) (n Number, ok bool) {
	i, ok := new(big.Int).SetString(swapCase(s), 62)
	if !ok || i.BitLen() > 8*numberBytes {
		return n, false
	}
	var b [numberBytes]byte
	i.FillBytes(b[:])
	first := binary.BigEndian.Uint64(b[0:])
	n = Number{
		GoodsID: int64(binary.BigEndian.Uint64(b[8:])), millis: first >> highBits,
		high: first & (1<<highBits - 1), low: binary.BigEndian.Uint64(b[16:]),
		counter: uint64(binary.BigEndian.Uint16(b[24:])),
	}
	return n, n.GoodsID > 0 && n.String() == s
}

// swapCase turns the digits of package big, in which a comes before A, into digits in the order of
// their bytes, so that numbers sort by time; and back.
func swapCase(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' {
			b[i] = c ^ 'a' ^ 'A'
		}
	}
	return string(b)
}

// FirstAt returns a text that sorts before the numbers that are issued from a time on, and after
// those before.
func FirstAt(t time.Time) string { return Number{millis: uint64(t.UnixMilli())}.String() }

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
	n := Number{GoodsID: goodsID, millis: uint64(now.UnixMilli()), counter: count}
	n.high, n.low = sign(k.keys[0], n, buyerID)
	return n
}

// VerifyPath returns the number of a buyer's path to a goods, or ErrForeign. The number may have
// expired. now only chooses the period of the time of issue, and may be wrong by days.
func (k *Keys) VerifyPath(path string, goodsID, buyerID int64, now time.Time) (Number, error) {
	b, err := hex.DecodeString(path)
	if err != nil || len(path) != PathLen {
		return Number{}, ErrForeign
	}
	first := binary.BigEndian.Uint64(b)
	nonce := first >> highBits
	n := Number{
		GoodsID: goodsID, counter: nonce & (1<<counterBits - 1),
		high: first & (1<<highBits - 1), low: binary.BigEndian.Uint64(b[8:]),
	}
	ms := nonce >> counterBits & (1<<millisBits - 1)
	latest := uint64(now.Unix()) + 1<<(timeBits-1)
	second := latest - (latest-nonce>>(counterBits+millisBits))&(1<<timeBits-1)
	for range maxAge {
		n.millis = second*1000 + ms
		if k.verifies(n, buyerID) && n.Path() == path {
			return n, nil
		}
		second -= 1 << timeBits
	}
	return Number{}, ErrForeign
}

// Verify returns the content of a buyer's order number, or ErrForeign.
func (k *Keys) Verify(sn string, buyerID int64) (Number, error) {
	n, err := k.Parse(sn)
	if err == nil && !n.legacy && !k.verifies(n, buyerID) {
		err = ErrForeign
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
	binary.BigEndian.PutUint64(b[16:], n.millis)
	binary.BigEndian.PutUint64(b[24:], n.counter)
	mac := hmac.New(md5.New, key)
	mac.Write(b[:])
	sum := mac.Sum(b[:0])
	return binary.BigEndian.Uint64(sum) >> (64 - highBits), binary.BigEndian.Uint64(sum[8:])
}
