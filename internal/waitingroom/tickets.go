package waitingroom

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"

	"flashsale.dev/seckill/internal/userid"
)

const (
	// ticketVersion is the first character of a ticket, so that a later format can stand beside it.
	ticketVersion = '1'
	// ticketLabel separates tickets from other MACs under the same secrets.
	ticketLabel = "seckill waiting room ticket v1\x00"
	numberBytes = 8
	macBytes    = 16
)

// ticketLen is the length of a ticket in characters. 24 bytes are whole base64 groups, so each
// ticket has one spelling.
const ticketLen = 1 + (numberBytes+macBytes)/3*4

// errBadTicket means that a ticket is malformed, is not signed by a secret of the key ring, or is
// of another buyer or another goods.
var errBadTicket = errors.New("bad ticket")

// Tickets signs and verifies tickets: signed texts with the number of one buyer in one waiting
// room. A ticket restores its number after Redis lost it. Tickets is safe for concurrent use.
type Tickets struct{ secrets [][]byte }

// NewTickets returns the tickets of a key ring: the first secret signs, all verify. It panics
// without a secret.
func NewTickets(secrets ...[]byte) *Tickets {
	if len(secrets) == 0 {
		panic("waitingroom: tickets need a secret")
	}
	return &Tickets{secrets}
}

// Sign returns the ticket of a number: ticketLen characters that need no escaping in a URL.
func (t *Tickets) Sign(goodsID int64, buyerID string, number int64) string {
	raw := binary.BigEndian.AppendUint64(make([]byte, 0, numberBytes+macBytes), uint64(number))
	raw = append(raw, ticketMAC(t.secrets[0], goodsID, buyerID, number)...)
	return string(ticketVersion) + base64.RawURLEncoding.EncodeToString(raw)
}

// Number returns the number of a ticket that Sign made for this goods and buyer, else errBadTicket.
func (t *Tickets) Number(ticket string, goodsID int64, buyerID string) (int64, error) {
	if len(ticket) != ticketLen || ticket[0] != ticketVersion {
		return 0, errBadTicket
	}
	raw, err := base64.RawURLEncoding.DecodeString(ticket[1:])
	// The decoder skips line breaks, so a text of the right length may be too short.
	if err != nil || len(raw) != numberBytes+macBytes {
		return 0, errBadTicket
	}
	number := int64(binary.BigEndian.Uint64(raw))
	for _, secret := range t.secrets {
		if hmac.Equal(raw[numberBytes:], ticketMAC(secret, goodsID, buyerID, number)) {
			return number, nil
		}
	}
	return 0, errBadTicket
}

func ticketMAC(secret []byte, goodsID int64, buyerID string, number int64) []byte {
	mac := hmac.New(sha256.New, secret)
	input := binary.BigEndian.AppendUint64([]byte(ticketLabel), uint64(goodsID))
	input = userid.AppendSigned(input, buyerID)
	mac.Write(binary.BigEndian.AppendUint64(input, uint64(number)))
	return mac.Sum(nil)[:macBytes]
}
