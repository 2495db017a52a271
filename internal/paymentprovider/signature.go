package paymentprovider

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"
	"time"

	"flashsale.dev/seckill/internal/apierror"
)

// The header fields of a callback.
const (
	TimestampHeader = "X-Seckill-Timestamp" // when it was signed, in Unix seconds
	SignatureHeader = "X-Seckill-Signature" // 64 hex digits
)

// MinSecret is the shortest secret in bytes: the size of an HMAC-SHA256.
const MinSecret = 32

// tolerance is the largest distance between a callback's timestamp and this node's clock.
const tolerance = 5 * time.Minute

// errShortSecret reports a secret of fewer than MinSecret bytes.
var errShortSecret = errors.New("a payment secret must have at least 32 bytes")

// Signer verifies callbacks with the secret that the provider and the API share.
type Signer struct {
	secret []byte
	now    func() time.Time
}

// NewSigner makes a signer. Its error is errShortSecret.
func NewSigner(secret []byte, now func() time.Time) (*Signer, error) {
	if len(secret) < MinSecret {
		return nil, errShortSecret
	}
	return &Signer{secret: secret, now: now}, nil
}

// Sign returns the two header fields of a callback with this body, sent now. Tests call it: this
// project's programs only verify.
func (s *Signer) Sign(body []byte) (timestamp, signature string) {
	timestamp = strconv.FormatInt(s.now().Unix(), 10)
	return timestamp, hex.EncodeToString(s.mac(timestamp, body))
}

// Verify returns an UNAUTHENTICATED error if the provider did not sign the body, or signed it too
// long ago. The comparison takes constant time.
func (s *Signer) Verify(timestamp, signature string, body []byte) error {
	received, err := hex.DecodeString(signature)
	if err != nil || !hmac.Equal(received, s.mac(timestamp, body)) {
		return apierror.New(apierror.Unauthenticated, "%s does not match body and timestamp",
			SignatureHeader)
	}
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || time.Unix(seconds, 0).Sub(s.now()).Abs() > tolerance {
		return apierror.New(apierror.Unauthenticated,
			"%s must be Unix seconds within %s of the server's clock", TimestampHeader, tolerance)
	}
	return nil
}

// mac returns the HMAC of a callback. The full stop separates timestamp and body, so that digits
// cannot move between them.
func (s *Signer) mac(timestamp string, body []byte) []byte {
	h := hmac.New(sha256.New, s.secret)
	h.Write([]byte(timestamp))
	h.Write([]byte{'.'})
	h.Write(body)
	return h.Sum(nil)
}
