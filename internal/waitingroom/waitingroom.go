// Package waitingroom holds the arithmetic of a waiting room: the draw, which is a permutation of
// the numbers, and the tickets that hold a number.
package waitingroom

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math/bits"
)

// Seed is a secret of 32 bytes until the draw, and public afterwards.
type Seed []byte

// NewSeed returns a random seed.
func NewSeed() Seed {
	s := make(Seed, sha256.Size)
	_, _ = rand.Read(s) // never fails
	return s
}

// Commitment is the SHA-256 of a seed in hex.
func (s Seed) Commitment() string {
	sum := sha256.Sum256(s)
	return hex.EncodeToString(sum[:])
}

// Draw is a permutation of the numbers below size.
type Draw struct {
	key  []byte
	size uint32
	half uint
}

// NewDraw returns the draw of a seed and a digest.
func NewDraw(seed, digest []byte, size uint32) *Draw {
	mac := hmac.New(sha256.New, seed)
	mac.Write(digest)
	return &Draw{mac.Sum(nil), size, uint(bits.Len32(max(size, 2)-1)+1) / 2}
}

func (d *Draw) round(i byte, r uint32) uint32 {
	mac := hmac.New(sha256.New, d.key)
	mac.Write(append([]byte{i}, binary.BigEndian.AppendUint32(nil, r)...))
	return binary.BigEndian.Uint32(mac.Sum(nil)) & (1<<d.half - 1)
}

// Position returns the place of a number. Numbers from size on keep their order.
func (d *Draw) Position(number uint32) uint32 {
	if number >= d.size {
		return number
	}
	for {
		l, r := number>>d.half, number&(1<<d.half-1)
		for i := range byte(8) {
			l, r = r, l^d.round(i, r)
		}
		if number = l<<d.half | r; number < d.size {
			return number
		}
	}
}

// Number is the reverse of Position.
func (d *Draw) Number(position uint32) uint32 {
	if position >= d.size {
		return position
	}
	for {
		l, r := position>>d.half, position&(1<<d.half-1)
		for i := byte(8); i > 0; i-- {
			l, r = r^d.round(i-1, l), l
		}
		if position = l<<d.half | r; position < d.size {
			return position
		}
	}
}

// Tickets signs numbers.
type Tickets struct{ secrets [][]byte }

// NewTickets returns tickets under secrets: the first signs, all verify.
func NewTickets(secrets ...[]byte) *Tickets { return &Tickets{secrets} }

// ErrBadTicket means that a ticket is not ours, or is another buyer's or another goods'.
var ErrBadTicket = errors.New("bad ticket")

func sign(secret []byte, goodsID, buyerID int64, number uint32) []byte {
	mac := hmac.New(sha256.New, secret)
	b := binary.BigEndian.AppendUint64([]byte("ticket"), uint64(goodsID))
	mac.Write(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(b, uint64(buyerID)), number))
	return append(binary.BigEndian.AppendUint32(nil, number), mac.Sum(nil)[:12]...)
}

// Sign returns the ticket of a buyer's number.
func (t *Tickets) Sign(goodsID, buyerID int64, number uint32) string {
	return base64.RawURLEncoding.EncodeToString(sign(t.secrets[0], goodsID, buyerID, number))
}

// Number returns a ticket's number, or ErrBadTicket.
func (t *Tickets) Number(ticket string, goodsID, buyerID int64) (uint32, error) {
	raw, err := base64.RawURLEncoding.DecodeString(ticket)
	if err != nil || len(raw) != 16 {
		return 0, ErrBadTicket
	}
	number := binary.BigEndian.Uint32(raw)
	for _, secret := range t.secrets {
		if hmac.Equal(raw, sign(secret, goodsID, buyerID, number)) {
			return number, nil
		}
	}
	return 0, ErrBadTicket
}
