package auth

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"flashsale.dev/seckill/internal/ordersn"
	"flashsale.dev/seckill/internal/userid"
)

// PhoneKeyBytes is the length of a key: AES-256.
const PhoneKeyBytes = 32

// derivedID is reserved for the key that DerivedPhoneKey makes.
const derivedID = "0"

// sealedMark begins an encrypted number and includes the format's version. No phone number begins
// with it.
const sealedMark = "~1."

// Errors of keys and of encrypted numbers. Their texts contain no key and no number.
var (
	errPhoneKeys = errors.New("must be id:key, several with commas: an id of 1 to 8 of " +
		"[0-9a-z] other than 0, each once, and a key of 32 bytes in base64")
	errSealed = errors.New("a buyer's data can't be opened: " +
		"it was sealed with a key that is not here, or for another buyer")
)

var phoneKeyID = regexp.MustCompile(`^[0-9a-z]{1,8}$`)

// PhoneKey is a key and its id. Every number that the key encrypts contains the id.
type PhoneKey struct {
	ID  string
	Key []byte
}

// ParsePhoneKeys parses "id:key,id:key" with keys of 32 bytes in base64. An empty text has no keys.
// Its error is errPhoneKeys.
func ParsePhoneKeys(text string) ([]PhoneKey, error) {
	var keys []PhoneKey
	seen := map[string]bool{derivedID: true}
	for pair := range strings.SplitSeq(text, ",") {
		if text == "" {
			break
		}
		id, encoded, _ := strings.Cut(strings.TrimSpace(pair), ":")
		key, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil || len(key) != PhoneKeyBytes || seen[id] ||
			!phoneKeyID.MatchString(id) {
			return nil, errPhoneKeys
		}
		seen[id], keys = true, append(keys, PhoneKey{ID: id, Key: key})
	}
	return keys, nil
}

// DerivedPhoneKey derives a key from the order secret. An installation without configured keys can
// then encrypt numbers too.
func DerivedPhoneKey(orderSecret []byte) PhoneKey {
	return PhoneKey{ID: derivedID, Key: ordersn.Derive(orderSecret, "flashsale phone key")}
}

// Phones encrypts phone numbers for storage with AES-256-GCM and random nonces. One key may encrypt
// at most 2^32 numbers (NIST SP 800-38D). A number is bound to its buyer: it does not decrypt for
// another. The first key encrypts, and every key decrypts. It is safe for concurrent use.
type Phones struct {
	first string // the mark and the first key's id
	seal  cipher.AEAD
	open  map[string][]cipher.AEAD // by id; order secrets may derive several of derivedID
}

// NewPhones returns a Phones of one or more keys; without a key the error is errPhoneKeys.
func NewPhones(keys ...PhoneKey) (*Phones, error) {
	if len(keys) == 0 {
		return nil, errPhoneKeys
	}
	p := &Phones{
		first: sealedMark + keys[0].ID + ".", open: make(map[string][]cipher.AEAD, len(keys)),
	}
	for _, k := range keys {
		block, err := aes.NewCipher(k.Key)
		if err != nil {
			return nil, fmt.Errorf("phone key %s: %w", k.ID, err)
		}
		sealer, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return nil, fmt.Errorf("phone key %s: %w", k.ID, err)
		}
		p.open[k.ID] = append(p.open[k.ID], sealer)
	}
	p.seal = p.open[keys[0].ID][0]
	return p, nil
}

// Seal encrypts a buyer's number and email address together. The result is printable ASCII, and ""
// if there is neither. Those of a token have at most 1,576 bytes, which fit the orders' column.
func (p *Phones) Seal(buyerID, phone, email string) string {
	text := phone
	if email != "" {
		text += contactSeparator + email
	}
	if text == "" {
		return ""
	}
	return p.sealText(text, buyerData(buyerID))
}

// contactSeparator ends the number. Neither part has control characters.
const contactSeparator = "\n"

// sealText encrypts a text with the first key and binds it to additional data.
func (p *Phones) sealText(text string, data []byte) string {
	box := make([]byte, 0, len(text)+p.seal.Overhead())
	sealed := p.seal.Seal(box, nil, []byte(text), data)
	out := make([]byte, 0, len(p.first)+base64.RawURLEncoding.EncodedLen(len(sealed)))
	return string(base64.RawURLEncoding.AppendEncode(append(out, p.first...), sealed))
}

// Open decrypts what Seal has encrypted, or returns errSealed. Numbers stored before encryption
// existed have no mark; it returns them unchanged.
func (p *Phones) Open(buyerID, kept string) (phone, email string, err error) {
	if !strings.HasPrefix(kept, sealedMark) {
		return kept, "", nil
	}
	text, err := p.openText(kept, buyerData(buyerID))
	phone, email, _ = strings.Cut(text, contactSeparator)
	return phone, email, err
}

// openText decrypts a text that was sealed with the same additional data, or returns errSealed.
func (p *Phones) openText(kept string, data []byte) (string, error) {
	rest, _ := strings.CutPrefix(kept, sealedMark)
	id, encoded, _ := strings.Cut(rest, ".")
	box, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil {
		return "", errSealed
	}
	for _, key := range p.open[id] {
		if text, err := key.Open(nil, nil, box, data); err == nil {
			return string(text), nil
		}
	}
	return "", errSealed
}

// buyerData is the additional data that binds a number to its buyer.
func buyerData(buyerID string) []byte {
	return userid.AppendSigned(nil, buyerID)
}
