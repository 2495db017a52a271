package accesscode

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/must"
)

const goods = int64(248171519795200123)

var (
	keys = NewKeys([]byte("a secret of the tests, 32 bytes."))
	noon = time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)
)

func sign(t *testing.T, k *Keys, kind seckill.AccessCode, expires time.Time, n int) []string {
	codes, _, err := k.Sign(goods, kind, expires, n)
	require.NoError(t, err)
	require.Len(t, codes, n)
	return codes
}

func TestVerify_AcceptsACodeAsPeopleTypeIt(t *testing.T) {
	code := sign(t, keys, seckill.SingleCodes, time.Time{}, 1)[0]
	require.Regexp(t, `^([0-9A-HJKMNP-TV-Z]{5}-){3}[0-9A-HJKMNP-TV-Z]{5}$`, code)
	n := must.Get(keys.Verify(code, goods, seckill.SingleCodes, noon))(t)
	for _, typed := range []string{
		strings.ToLower(code), strings.ReplaceAll(code, "-", ""), " " + code + " ",
		strings.ReplaceAll(code, "-", " - "), strings.ReplaceAll(code, "0", "o"),
		strings.ReplaceAll(code, "1", "I"), strings.ReplaceAll(code, "1", "l"),
	} {
		require.Equal(t, n,
			must.Get(keys.Verify(typed, goods, seckill.SingleCodes, noon))(t), typed)
	}
}

// TestVerify_RefusesEveryOtherDigit changes each digit of a code into each other one.
func TestVerify_RefusesEveryOtherDigit(t *testing.T) {
	code := sign(t, keys, seckill.SharedCodes, noon, 1)[0]
	for i := range code {
		for _, digit := range "0123456789ABCDEFGHJKMNPQRSTVWXYZUÜ#" {
			if changed := code[:i] + string(digit) + code[i+1:]; changed != code {
				_, err := keys.Verify(changed, goods, seckill.SharedCodes, noon.Add(-time.Hour))
				require.ErrorIs(t, err, errWrong, changed)
			}
		}
	}
}

func TestVerify_BindsGoodsKindAndSecret(t *testing.T) {
	code := sign(t, keys, seckill.SingleCodes, time.Time{}, 1)[0]
	other := NewKeys([]byte("another secret of 32 bytes......"))
	for name, verify := range map[string]func() (Number, error){
		"goods": func() (Number, error) {
			return keys.Verify(code, goods+1, seckill.SingleCodes, noon)
		},
		"kind": func() (Number, error) {
			return keys.Verify(code, goods, seckill.SharedCodes, noon)
		},
		"secret": func() (Number, error) {
			return other.Verify(code, goods, seckill.SingleCodes, noon)
		},
	} {
		_, err := verify()
		require.ErrorIs(t, err, errWrong, name)
	}
}

// TestVerify_AcceptsCodesOfFormerSecrets has the number of a code stay the same under a new secret,
// so that a claimed code stays claimed.
func TestVerify_AcceptsCodesOfFormerSecrets(t *testing.T) {
	former, next := []byte("the former secret"), []byte("the next secret")
	code := sign(t, NewKeys(former), seckill.SingleCodes, time.Time{}, 1)[0]
	before := must.Get(NewKeys(former).Verify(code, goods, seckill.SingleCodes, noon))(t)
	require.Equal(t, before,
		must.Get(NewKeys(next, former).Verify(code, goods, seckill.SingleCodes, noon))(t))
	_, err := NewKeys(next).Verify(code, goods, seckill.SingleCodes, noon)
	require.ErrorIs(t, err, errWrong)
}

// TestSign_EndsAtTheNextWholeHour checks the last moment of a code.
func TestSign_EndsAtTheNextWholeHour(t *testing.T) {
	for expires, end := range map[time.Time]time.Time{
		noon:                         noon,
		noon.Add(1):                  noon.Add(time.Hour),
		noon.Add(59 * time.Minute):   noon.Add(time.Hour),
		noon.Add(-time.Millisecond):  noon,
		time.Unix((1<<20-1)*3600, 0): time.Unix((1<<20-1)*3600, 0).UTC(),
	} {
		codes, got, err := keys.Sign(goods, seckill.SharedCodes, expires, 1)
		require.NoError(t, err)
		require.Equal(t, end, got)
		must.Get(keys.Verify(codes[0], goods, seckill.SharedCodes, end.Add(-1)))(t)
		_, err = keys.Verify(codes[0], goods, seckill.SharedCodes, end)
		require.ErrorIs(t, err, errExpired)
	}
	_, end, err := keys.Sign(goods, seckill.SharedCodes, time.Time{}, 1)
	require.NoError(t, err)
	require.Zero(t, end, "no end")
}

func TestSign_MakesDifferentCodes(t *testing.T) {
	seen := map[string]bool{}
	for range 20 {
		for _, code := range sign(t, keys, seckill.SingleCodes, noon, 500) {
			require.False(t, seen[code], code)
			seen[code] = true
		}
	}
	sign(t, keys, seckill.SingleCodes, noon, maxCount)
}

func TestSign_RefusesWhatNoCodeCanHave(t *testing.T) {
	for name, sign := range map[string]func() error{
		"goodsId": func() error {
			_, _, err := keys.Sign(0, seckill.SingleCodes, noon, 1)
			return err
		},
		"kind": func() error {
			_, _, err := keys.Sign(goods, seckill.NoCodes, noon, 1)
			return err
		},
		"count": func() error {
			_, _, err := keys.Sign(goods, seckill.SingleCodes, noon, 0)
			return err
		},
		"expires": func() error {
			_, _, err := keys.Sign(goods, seckill.SingleCodes, time.Unix(1<<20*3600, 0), 1)
			return err
		},
	} {
		err := sign()
		require.Equal(t, apierror.BadRequest, apierror.ReasonOf(err), name)
		require.ErrorContains(t, err, name)
	}
	_, _, err := keys.Sign(goods, seckill.SingleCodes, noon, maxCount+1)
	require.ErrorContains(t, err, "count")
	_, _, err = keys.Sign(goods, seckill.SingleCodes, time.Unix(-1, 0), 1)
	require.ErrorContains(t, err, "expires")
	sign(t, keys, seckill.SingleCodes, time.Date(2088, 12, 31, 23, 59, 59, 0, time.UTC), 1)
	_, _, err = keys.Sign(goods, seckill.SingleCodes,
		time.Date(2089, 11, 11, 0, 0, 0, 0, time.UTC), 1)
	require.ErrorContains(t, err, "the years 1970 to 2088")
}

// FuzzParse checks that a text that parses is the code of its content in one spelling, and that
// texts without a signature never verify.
func FuzzParse(f *testing.F) {
	codes, _, _ := keys.Sign(goods, seckill.SingleCodes, time.Time{}, 1)
	for _, seed := range []string{
		codes[0], "", "-", "00000-00000-00000-00000", "ZZZZZ-ZZZZZ-ZZZZZ-ZZZZZ",
		"ooooo iiiii lllll 0", strings.Repeat("-", maxLen+1), "\xff", "ıııııııııııııııııııı",
		"00000000000000000001\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		mac, n, ok := parse(text)
		_, err := keys.Verify(text, goods, seckill.SharedCodes, noon)
		require.ErrorIs(t, err, errWrong) // the seed's code is of the other kind
		if !ok {
			return
		}
		again := format(mac, n)
		require.Len(t, again, digits+digits/group-1)
		mac2, n2, ok := parse(again)
		require.True(t, ok)
		require.Equal(t, mac, mac2)
		require.Equal(t, n, n2)
	})
}
