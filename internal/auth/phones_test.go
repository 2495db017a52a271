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
		"", "138", "+4479460123456", strings.Repeat("☎", maxPhone),
		strings.Repeat("\U0001f4de", maxPhone), "~1.a.AAAA",
	} {
		kept := p.Seal("7", phone, "")
		require.LessOrEqual(t, len(kept), 220)
		if phone != "" {
			require.NotContains(t, kept, phone)
			require.NotEqual(t, kept, p.Seal("7", phone, ""),
				"two encryptions of one number must differ")
		}
		opened, email, err := p.Open("7", kept)
		require.NoError(t, err)
		require.Equal(t, phone, opened)
		require.Empty(t, email)
		if phone != "" {
			_, _, err := p.Open("8", kept)
			require.ErrorIs(t, err, errSealed, "another buyer's key must not open the number")
		}
	}
}

// TestPhonesSeal_FitsTheColumn seals the longest numbers and addresses of tokens.
func TestPhonesSeal_FitsTheColumn(t *testing.T) {
	p := must.Get(NewPhones(phoneKey("abcdefgh")))(t)
	const wide = "\U0001f4de" // the most bytes of a character
	for _, phone := range []string{"", "+4479460123456", strings.Repeat(wide, maxPhone)} {
		for _, email := range []string{
			"a@b", strings.Repeat("x", maxEmail), strings.Repeat(wide, maxEmail),
		} {
			kept := p.Seal("7", phone, email)
			require.LessOrEqual(t, len(kept), 1576)
			opened, got, err := p.Open("7", kept)
			require.NoError(t, err)
			require.Equal(t, []string{phone, email}, []string{opened, got})
		}
	}
	require.Empty(t, p.Seal("7", "", ""))
}

func TestPhonesOpen_ReturnsUnencryptedNumbers(t *testing.T) {
	p := must.Get(NewPhones(phoneKey("a")))(t)
	for _, old := range []string{"", "+49 30 1234", "~", "~1", "~2.a.b"} {
		phone, email, err := p.Open("7", old)
		require.NoError(t, err)
		require.Equal(t, old, phone)
		require.Empty(t, email)
	}
}

func TestPhonesOpen_AcceptsOldKeysDuringRotation(t *testing.T) {
	before := must.Get(NewPhones(DerivedPhoneKey([]byte("the order secret"))))(t)
	between := must.Get(NewPhones(phoneKey("b"), DerivedPhoneKey([]byte("the next order secret")),
		DerivedPhoneKey([]byte("the order secret"))))(t)
	after := must.Get(NewPhones(phoneKey("b")))(t)
	old := before.Seal("7", "12345678", "ann@example.org")
	opens := func(p *Phones, kept string) {
		t.Helper()
		phone, email, err := p.Open("7", kept)
		require.NoError(t, err)
		require.Equal(t, []string{"12345678", "ann@example.org"}, []string{phone, email})
	}
	opens(between, old)
	opens(after, between.Seal("7", "12345678", "ann@example.org")) // the first key seals
	for _, kept := range []string{
		old, old[:len(old)-1], "~1.", "~1.b", "~1.b.", "~1.b.%", "~1.b.AAAA",
		strings.Replace(old, ".0.", ".b.", 1),
	} {
		_, _, err := after.Open("7", kept)
		require.ErrorIs(t, err, errSealed, kept)
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
		require.ErrorIs(t, err, errPhoneKeys, bad)
	}
	_, err := NewPhones()
	require.Error(t, err)
	_, err = NewPhones(PhoneKey{ID: "1", Key: []byte("short")})
	require.Error(t, err)
}

func FuzzPhones_Open(f *testing.F) {
	p := must.Get(NewPhones(phoneKey("a")))(f)
	f.Add(int64(7), p.Seal("7", "12345678", "a@b"))
	f.Add(int64(7), "+49 30 1234")
	f.Fuzz(func(t *testing.T, buyer int64, kept string) {
		by := fmt.Sprint(buyer)
		if got, email, err := p.Open(by, kept); err != nil && got+email != "" {
			t.Fatalf("%q opens to %q, %q and %v", kept, got, email, err)
		}
		if got, email, err := p.Open(by, p.Seal(by, kept, "")); err != nil ||
			!strings.Contains(kept, contactSeparator) && got+email != kept {
			t.Fatalf("%q comes back as %q, %q, %v", kept, got, email, err)
		}
	})
}
