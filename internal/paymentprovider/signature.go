package paymentprovider

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"
	"time"

	"flashsale.dev/seckill/internal/seckill"
)

// The header fields of a callback.
const (
	TimestampHeader = "X-Seckill-Timestamp" // when it was signed, in Unix seconds
	SignatureHeader = "X-Seckill-Signature" // 64 hex digits
)

// MinSecret is how many bytes a secret must have: what HMAC-SHA256 puts out.
const MinSecret = 32

// Tolerance is how far a callback's timestamp may be from this node's clock, before or after.
const Tolerance = 5 * time.Minute

// ErrShortSecret says that a secret has fewer than MinSecret bytes.
var ErrShortSecret = errors.New("a payment secret must have at least 32 bytes")

// Signer signs callbacks and verifies them, under the secret that provider and API share.
type Signer struct {
	secret []byte
	now    func() time.Time
}

// NewSigner makes a signer.
func NewSigner(secret []byte, now func() time.Time) (*Signer, error) {
	if len(secret) < MinSecret {
		return nil, ErrShortSecret
	}
	return &Signer{secret: secret, now: now}, nil
}

// Sign gives the two header fields of a callback with a body that is sent now.
func (s *Signer) Sign(body []byte) (timestamp, signature string) {
	timestamp = strconv.FormatInt(s.now().Unix(), 10)
	return timestamp, hex.EncodeToString(s.mac(timestamp, body))
}

// Verify tells whether a body is the provider's: a refusal of the reason UNAUTHENTICATED where it is not. It takes the
// same time wherever a signature differs.
func (s *Signer) Verify(timestamp, signature string, body []byte) error {
	given, err := hex.DecodeString(signature)
	if err != nil || !hmac.Equal(given, s.mac(timestamp, body)) {
		return seckill.NewError(seckill.Unauthenticated, "%s is not that of this body and timestamp", SignatureHeader)
	}
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || time.Unix(seconds, 0).Sub(s.now()).Abs() > Tolerance {
		return seckill.NewError(seckill.Unauthenticated, "%s must be the time in Unix seconds, within %s of ours", TimestampHeader, Tolerance)
	}
	return nil
}

func (s *Signer) mac(timestamp string, body []byte) []byte {
	h := hmac.New(sha256.New, s.secret)
	h.Write([]byte(timestamp))
	h.Write([]byte{'.'})
	h.Write(body)
	return h.Sum(nil)
}
