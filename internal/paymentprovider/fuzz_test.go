package paymentprovider

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// FuzzVerifySignature checks that Verify accepts only the exact bytes that the signer signed.
func FuzzVerifySignature(f *testing.F) {
	now := time.Unix(1794391203, 0)
	s, err := NewSigner([]byte("a secret of the tests, of 32 bytes or more"),
		func() time.Time { return now })
	require.NoError(f, err)
	good := []byte(`{"paymentId":"p-1","orderSn":"06cq","amount":1}`)
	timestamp, signature := s.Sign(good)
	f.Add(timestamp, signature, good)
	f.Add("-1", "zz", []byte{})
	f.Fuzz(func(t *testing.T, at, mark string, body []byte) {
		if s.Verify(at, mark, body) == nil {
			_, again := s.Sign(body)
			require.True(t, at == timestamp && strings.EqualFold(mark, again), "%q %q %q", at, mark,
				body)
		}
	})
}
