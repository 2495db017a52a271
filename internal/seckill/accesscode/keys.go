package accesscode

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/ordersn"
	"flashsale.dev/seckill/internal/seckill"
)

const (
	// maxLen bounds the text of a code with its separators, in bytes.
	maxLen = 64
	// maxCount is how many codes one call signs at most.
	maxCount = 100_000

	digits, group       = 20, 5
	macBytes            = 6
	endBits, serialBits = 20, 32
	codeBytes           = 13 // 104 bits, of which the last four are 0
)

// errWrong means that a text is no code for this goods and kind.
var errWrong = errors.New("wrong access code")

// errExpired means that a code was right and has ended.
var errExpired = errors.New("expired access code")

// Number is the content of a code without its MAC: its end and serial number. It is > 0, and names
// the code within its goods.
type Number int64

// end returns the time from which the code is refused; zero: it has none.
func (n Number) end() time.Time {
	hours := int64(n) >> serialBits
	if hours == 0 {
		return time.Time{}
	}
	return time.Unix(hours*3600, 0).UTC()
}

// Keys sign and verify codes. They are safe for concurrent use.
type Keys struct{ keys [][]byte }

// NewKeys derives the keys from the order secrets, of which there must be one: the first signs, all
// verify.
func NewKeys(secrets ...[]byte) *Keys {
	k := &Keys{}
	for _, secret := range secrets {
		k.keys = append(k.keys, ordersn.Derive(secret, "flashsale access code"))
	}
	return k
}

// Sign returns count codes (1 to maxCount) of a goods, and the time at which they end. That is
// expires, rounded up to a whole hour, and zero if expires is. Its errors are BadRequests.
//
// The serial numbers of a call follow one another from a random one on. Two calls with 10,000 codes
// each have a code in common with a probability of 1 in 200,000.
func (k *Keys) Sign(
	goodsID int64, kind seckill.AccessCode, expires time.Time, count int,
) (codes []string, end time.Time, err error) {
	const hour = 3600
	hours := int64(0)
	if !expires.IsZero() {
		hours = expires.Add(time.Hour-time.Nanosecond).Unix() / hour
	}
	var p apierror.Problems
	p.Check(goodsID < 1, "goodsId", "must be a whole number from 1 on")
	p.Check(!kind.Required(), "kind", "must be shared or single")
	p.Check(count < 1 || count > maxCount, "count", "must be 1 to %d", maxCount)
	p.Check(!expires.IsZero() && (hours < 1 || hours >= 1<<endBits), "expires",
		"must be a time of the years 1970 to 2088")
	if err := p.Err(); err != nil {
		return nil, time.Time{}, err
	}
	first := 1 + rand.Int64N(1<<serialBits-1-maxCount) // 0 would name no code
	for i := range count {
		n := Number(hours<<serialBits | (first + int64(i)))
		codes = append(codes, format(macOf(k.keys[0], goodsID, kind, n), n))
	}
	return codes, Number(hours << serialBits).end(), nil
}

// Verify returns the number of a code for a goods and kind. Its errors are errWrong and errExpired.
func (k *Keys) Verify(
	text string, goodsID int64, kind seckill.AccessCode, now time.Time,
) (Number, error) {
	mac, n, ok := parse(text)
	if !ok || !k.verifies(mac, goodsID, kind, n) {
		return 0, errWrong
	}
	if end := n.end(); !end.IsZero() && !now.Before(end) {
		return 0, errExpired
	}
	return n, nil
}

func (k *Keys) verifies(mac []byte, goodsID int64, kind seckill.AccessCode, n Number) bool {
	return slices.ContainsFunc(k.keys, func(key []byte) bool {
		return hmac.Equal(mac, macOf(key, goodsID, kind, n))
	})
}

func macOf(key []byte, goodsID int64, kind seckill.AccessCode, n Number) []byte {
	mac := hmac.New(sha256.New, key)
	b := binary.BigEndian.AppendUint64(nil, uint64(goodsID))
	b = binary.BigEndian.AppendUint64(b, uint64(n))
	mac.Write(append(b, kind...))
	return mac.Sum(nil)[:macBytes]
}

// crockford is base 32 without I, L, O and U.
var crockford = base32.NewEncoding("0123456789ABCDEFGHJKMNPQRSTVWXYZ").WithPadding(base32.NoPadding)

// misread has the characters that Crockford's base 32 accepts for digits, and the separators.
//
//nolint:gochecknoglobals // a table, which never changes
var misread = strings.NewReplacer("O", "0", "I", "1", "L", "1", "-", "", " ", "")

// format returns the text of a code: its digits in groups, with hyphens between them.
func format(mac []byte, n Number) string {
	b := binary.BigEndian.AppendUint64(append(make([]byte, 0, 16), mac...), uint64(n)<<12)
	text := crockford.EncodeToString(b[:codeBytes])[:digits]
	groups := make([]string, 0, digits/group)
	for i := 0; i < digits; i += group {
		groups = append(groups, text[i:i+group])
	}
	return strings.Join(groups, "-")
}

// parse decodes the text of a code. Case, spaces and hyphens mean nothing.
func parse(text string) (mac []byte, n Number, ok bool) {
	if len(text) > maxLen {
		return nil, 0, false
	}
	text = misread.Replace(strings.ToUpper(text))
	if len(text) != digits {
		return nil, 0, false
	}
	b, err := crockford.DecodeString(text + "0") // the four bits that fill the last byte
	if err != nil || len(b) != codeBytes {
		return nil, 0, false
	}
	var low [8]byte
	copy(low[:], b[macBytes:])
	n = Number(binary.BigEndian.Uint64(low[:]) >> 12)
	return b[:macBytes], n, n > 0
}
