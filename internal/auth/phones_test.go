package auth

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/must"
)

func phoneKey(id string) PhoneKey {
	return PhoneKey{ID: id, Key: []byte(strings.Repeat(id[:1], PhoneKeyBytes))}
}

func TestPhonesOpen_NeedsTheSameBuyer(t *testing.T) {
	p := must.Get(NewPhones(phoneKey("a")))(t)
	for _, phone := range []string{
		"", "138", "+4479460123456", strings.Repeat("☎", MaxPhone),
		strings.Repeat("\U0001f4de", MaxPhone), "~1.a.AAAA",
	} {
		kept := p.Seal("7", phone)
		require.LessOrEqual(t, len(kept), 220)
		if phone != "" {
			require.NotContains(t, kept, phone)
			require.NotEqual(t, kept, p.Seal("7", phone), "two encryptions of one number must differ")
		}
		require.Equal(t, phone, must.Get(p.Open("7", kept))(t))
		if phone != "" {
			_, err := p.Open("8", kept)
			require.ErrorIs(t, err, ErrSealed, "another buyer's key must not open the number")
		}
	}
}

func TestPhonesOpen_ReturnsUnencryptedNumbers(t *testing.T) {
	p := must.Get(NewPhones(phoneKey("a")))(t)
	for _, old := range []string{"", "+49 30 1234", "~", "~1", "~2.a.b"} {
		require.Equal(t, old, must.Get(p.Open("7", old))(t))
	}
}

func TestPhonesOpen_AcceptsOldKeysDuringRotation(t *testing.T) {
	before := must.Get(NewPhones(DerivedPhoneKey([]byte("the order secret"))))(t)
	between := must.Get(NewPhones(phoneKey("b"), DerivedPhoneKey([]byte("the next order secret")),
		DerivedPhoneKey([]byte("the order secret"))))(t)
	after := must.Get(NewPhones(phoneKey("b")))(t)
	old := before.Seal("7", "12345678")
	require.Equal(t, "12345678", must.Get(between.Open("7", old))(t))
	require.Equal(t, "12345678",
		must.Get(after.Open("7", between.Seal("7", "12345678")))(t, "the first key seals"))
	for _, kept := range []string{
		old, old[:len(old)-1], "~1.", "~1.b", "~1.b.", "~1.b.%", "~1.b.AAAA",
		strings.Replace(old, ".0.", ".b.", 1),
	} {
		_, err := after.Open("7", kept)
		require.ErrorIs(t, err, ErrSealed, kept)
	}
}

func TestParsePhoneKeys_AcceptsOnlyTheirForm(t *testing.T) {
	good := base64.StdEncoding.EncodeToString(phoneKey("x").Key)
	keys := must.Get(ParsePhoneKeys("2026b:" + good + ", 1:" + good))(t)
	require.Equal(t, []string{"2026b", "1"}, []string{keys[0].ID, keys[1].ID})
	require.Equal(t, phoneKey("x").Key, keys[1].Key)
	require.Empty(t, must.Get(ParsePhoneKeys(""))(t))
	for _, bad := range []string{
		",", good, "1:", "1:short", "0:" + good, ":" + good, "A:" + good, "123456789:" + good,
		"1:" + good + ",1:" + good, "1:" + good + ",",
	} {
		_, err := ParsePhoneKeys(bad)
		require.ErrorIs(t, err, ErrPhoneKeys, bad)
	}
	_, err := NewPhones()
	require.Error(t, err)
	_, err = NewPhones(PhoneKey{ID: "1", Key: []byte("short")})
	require.Error(t, err)
}

func FuzzPhones_Open(f *testing.F) {
	p := must.Get(NewPhones(phoneKey("a")))(f)
	f.Add(int64(7), p.Seal("7", "12345678"))
	f.Add(int64(7), "+49 30 1234")
	f.Fuzz(func(t *testing.T, buyer int64, kept string) {
		if got, err := p.Open(fmt.Sprint(buyer), kept); err != nil && got != "" {
			t.Fatalf("%q opens to %q and %v", kept, got, err)
		}
		if got, err := p.Open(fmt.Sprint(buyer), p.Seal(fmt.Sprint(buyer), kept)); err != nil || got != kept {
			t.Fatalf("%q comes back as %q, %v", kept, got, err)
		}
	})
}
