package paymentprovider

import (
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/payment"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

var secret = []byte("a secret of provider and API, 32+")

func signerAt(t *testing.T, now time.Time) *Signer {
	t.Helper()
	s, err := NewSigner(secret, func() time.Time { return now })
	require.NoError(t, err)
	return s
}

// TestSign_MatchesOpenSSL compares Sign with the output of `printf '%s.%s' "$timestamp" "$body" |
// openssl dgst -sha256 -hmac "$secret"`.
func TestSign_MatchesOpenSSL(t *testing.T) {
	timestamp, signature := signerAt(t, time.Unix(1794391200, 0)).Sign([]byte(`{"amount":1}`))
	require.Equal(t, "1794391200", timestamp)
	require.Equal(t, "cc90ce5e76ca140326c08e2467e7d20e8f7fe6757d529c860401907b776a8bc9", signature)
}

func TestVerify_AcceptsOnlySignedCallbacks(t *testing.T) {
	now := time.Unix(1794391200, 0)
	body := []byte(`{"paymentId":"p-1","orderSn":"o","amount":1}`)
	ours := signerAt(t, now)
	timestamp, signature := ours.Sign(body)
	require.NoError(t, ours.Verify(timestamp, signature, body))
	require.NoError(t, ours.Verify(timestamp, strings.ToUpper(signature), body))
	other, err := NewSigner([]byte(strings.Repeat("x", 32)), ours.now)
	require.NoError(t, err)
	_, forged := other.Sign(body)
	for name, c := range map[string][3]string{
		"nothing":          {"", "", ""},
		"no signature":     {timestamp, "", string(body)},
		"no timestamp":     {"", signature, string(body)},
		"another secret's": {timestamp, forged, string(body)},
		"another body's": {
			timestamp, signature, strings.Replace(string(body), "1", "2", 1),
		},
		"another timestamp's":      {"1794391201", signature, string(body)},
		"the point moved":          {timestamp + ".", signature, string(body[1:])},
		"cut":                      {timestamp, signature[:62], string(body)},
		"longer":                   {timestamp, signature + "00", string(body)},
		"no hex":                   {timestamp, strings.Repeat("z", 64), string(body)},
		"a digit changed":          {timestamp, flip(signature), string(body)},
		"signed, but no timestamp": {"soon", mac(ours, "soon", body), string(body)},
		"signed for ever": {
			"9223372036854775807", mac(ours, "9223372036854775807", body), string(body),
		},
		"signed before time": {
			"-9223372036854775808", mac(ours, "-9223372036854775808", body), string(body),
		},
	} {
		err := ours.Verify(c[0], c[1], []byte(c[2]))
		require.Equal(t, apierror.Unauthenticated, apierror.ReasonOf(err), name)
	}
	for offset, good := range map[time.Duration]bool{
		tolerance: true, -tolerance: true, tolerance + time.Second: false,
		-tolerance - time.Second: false,
	} {
		err := signerAt(t, now.Add(offset)).Verify(timestamp, signature, body)
		require.Equal(t, good, err == nil, "%s later: %v", offset, err)
	}
}

func flip(s string) string {
	if s[0] == '0' {
		return "1" + s[1:]
	}
	return "0" + s[1:]
}

func mac(s *Signer, timestamp string, body []byte) string {
	return hex.EncodeToString(s.mac(timestamp, body))
}

func TestNewSigner_RefusesShortSecrets(t *testing.T) {
	_, err := NewSigner(secret[:31], time.Now)
	require.ErrorIs(t, err, errShortSecret)
}

func TestTest_ChargesOnce(t *testing.T) {
	o := order.Order{OrderLine: reservation.OrderLine{OrderSn: "o-1"}, GoodsID: 42, Amount: 1999}
	first, err := Test{}.Charge(t.Context(), o)
	require.NoError(t, err)
	again, err := Test{}.Charge(t.Context(), o)
	require.NoError(t, err)
	require.Equal(t, first, again)
	require.Equal(t, payment.Payment{ID: "o-1", GoodsID: 42, OrderSn: "o-1", Amount: 1999}, first)
	require.NoError(t, Test{}.Refund(t.Context(), first))
}
