package auth

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// PhoneKeyBytes is how long a phone key is: AES-256.
const PhoneKeyBytes = 32

// derivedID is the id of the key that is made of the order secret; no other may have it.
const derivedID = "0"

// sealedMark begins what is sealed, with the version of its form; no phone number begins so.
const sealedMark = "~1."

// Errors of keys and of what they open. None says anything of a key or a number.
var (
	ErrPhoneKeys = errors.New("must be id:key, several with commas: an id of 1 to 8 of [0-9a-z] other than 0, each once, and a key of 32 bytes in base64")
	ErrSealed    = errors.New("a phone number can't be opened: it was sealed with a key that is not here, or for another buyer")
)

var phoneKeyID = regexp.MustCompile(`^[0-9a-z]{1,8}$`)

// PhoneKey is one key by its id, which stands in what it seals.
type PhoneKey struct {
	ID  string
	Key []byte
}

// ParsePhoneKeys reads "id:key,id:key", the keys in base64; "" is none.
func ParsePhoneKeys(text string) ([]PhoneKey, error) {
	var keys []PhoneKey
	seen := map[string]bool{derivedID: true}
	for pair := range strings.SplitSeq(text, ",") {
		if text == "" {
			break
		}
		id, encoded, _ := strings.Cut(strings.TrimSpace(pair), ":")
		key, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil || len(key) != PhoneKeyBytes || seen[id] || !phoneKeyID.MatchString(id) {
			return nil, ErrPhoneKeys
		}
		seen[id], keys = true, append(keys, PhoneKey{ID: id, Key: key})
	}
	return keys, nil
}

// DerivedPhoneKey makes a key of the order secret, from which the secret cannot be told.
func DerivedPhoneKey(orderSecret []byte) PhoneKey {
	mac := hmac.New(sha256.New, orderSecret)
	mac.Write([]byte("flashsale phone key"))
	return PhoneKey{ID: derivedID, Key: mac.Sum(nil)}
}

// Phones seals phone numbers before they are kept anywhere and opens them to be shown: AES-256-GCM with random nonces
// (NIST SP 800-38D: 2^32 numbers under one key at most, then another key first), bound to their buyer, so that one which
// is moved to another's order does not open. The first key seals, every key opens.
type Phones struct {
	first string // the mark and the first key's id
	seal  cipher.AEAD
	open  map[string]cipher.AEAD
}

// NewPhones makes a Phones of at least one key.
func NewPhones(keys ...PhoneKey) (*Phones, error) {
	if len(keys) == 0 {
		return nil, ErrPhoneKeys
	}
	p := &Phones{first: sealedMark + keys[0].ID + ".", open: make(map[string]cipher.AEAD, len(keys))}
	for _, k := range keys {
		block, err := aes.NewCipher(k.Key)
		if err != nil {
			return nil, fmt.Errorf("phone key %s: %w", k.ID, err)
		}
		if p.open[k.ID], err = cipher.NewGCMWithRandomNonce(block); err != nil {
			return nil, fmt.Errorf("phone key %s: %w", k.ID, err)
		}
	}
	p.seal = p.open[keys[0].ID]
	return p, nil
}

// Seal gives a buyer's number as it is kept: printable ASCII, at most 220 bytes of a number of MaxPhone characters. None
// stays none.
func (p *Phones) Seal(buyerID int64, phone string) string {
	if phone == "" {
		return ""
	}
	sealed := p.seal.Seal(make([]byte, 0, len(phone)+p.seal.Overhead()), nil, []byte(phone), owner(buyerID))
	out := make([]byte, 0, len(p.first)+base64.RawURLEncoding.EncodedLen(len(sealed)))
	return string(base64.RawURLEncoding.AppendEncode(append(out, p.first...), sealed))
}

// Open gives the number of what was kept for a buyer, or ErrSealed. What was kept before numbers were sealed stays as it
// is.
func (p *Phones) Open(buyerID int64, kept string) (string, error) {
	rest, sealed := strings.CutPrefix(kept, sealedMark)
	if !sealed {
		return kept, nil
	}
	id, encoded, _ := strings.Cut(rest, ".")
	key, ok := p.open[id]
	if !ok {
		return "", ErrSealed
	}
	box, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil {
		return "", ErrSealed
	}
	phone, err := key.Open(box[:0], nil, box, owner(buyerID))
	if err != nil {
		return "", ErrSealed
	}
	return string(phone), nil
}

// owner is what a sealed number is bound to.
func owner(buyerID int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(buyerID)) }
