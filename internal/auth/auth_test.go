package auth

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	"flashsale.dev/seckill/internal/userid"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/testclock"
)

var secret = []byte("a secret of the tests, of 32 bytes or more")

func newTokens(t testing.TB, cacheSize int) (*Tokens, *testclock.Clock) {
	t.Helper()
	c := testclock.New()
	return must.Get(New(secret, cacheSize, c.Now))(t), c
}

func TestTokensVerify_ReturnsTheSignedActor(t *testing.T) {
	for _, cacheSize := range []int{0, 100} {
		tokens, _ := newTokens(t, cacheSize)
		for _, a := range []seckill.Actor{
			{ID: "1", Role: seckill.Operator},
			{
				ID: strings.Repeat("~", userid.MaxLen), Role: seckill.Buyer,
				Name: strings.Repeat("名", MaxName), Phone: strings.Repeat("1", maxPhone),
				Email: strings.Repeat("e", maxEmail),
			},
		} {
			token := must.Get(tokens.Sign(a, time.Minute))(t)
			for range 3 {
				require.Equal(t, a, must.Get(tokens.Verify(token))(t))
			}
		}
	}
}

// TestTokensVerify_LeavesOutLongAddress checks that an email address out of bounds keeps no user
// from signing in.
func TestTokensVerify_LeavesOutLongAddress(t *testing.T) {
	tokens, c := newTokens(t, 0)
	a := seckill.Actor{ID: "7", Role: seckill.Buyer, Email: strings.Repeat("e", maxEmail+1)}
	token := must.Get(jwt.NewWithClaims(jwt.SigningMethodHS256,
		claimsOf(a, c.Now(), c.Now().Add(time.Hour))).SignedString(secret))(t)
	a.Email = ""
	require.Equal(t, a, must.Get(tokens.Verify(token))(t))
}

func TestTokensVerify_ExpiresCachedTokens(t *testing.T) {
	tokens, c := newTokens(t, 100)
	token := must.Get(tokens.Sign(seckill.Actor{ID: "7", Role: seckill.Buyer}, time.Minute))(t)
	must.Get(tokens.Verify(token))(t)
	c.Add(time.Minute)
	_, err := tokens.Verify(token)
	require.Equal(t, apierror.Unauthenticated, apierror.ReasonOf(err))
	require.Zero(t, tokens.cache.Len(), "an expired token leaves the cache")
}

// TestTokensVerify_AcceptsAnyLaterDate checks that an expiry that overflows a time is not in the
// past, and that nbf beyond it is not either.
func TestTokensVerify_AcceptsAnyLaterDate(t *testing.T) {
	tokens, _ := newTokens(t, 0)
	token := func(claims string) string {
		return signed(`{"alg":"HS256"}`, `{"sub":"7","role":"buyer",`+claims+`}`, string(secret))
	}
	for _, exp := range []string{
		"999999999999", "999999999999999", "9223372036854775807", "9223372036854775808",
		"1e19", "1e300",
	} {
		_, until, err := tokens.VerifyWithExpiry(token(`"exp":` + exp))
		require.NoError(t, err, exp)
		require.Equal(t, 9999, until.UTC().Year(), exp)
		_, err = tokens.Verify(token(`"exp":99999999999,"nbf":` + exp))
		require.Equal(t, apierror.Unauthenticated, apierror.ReasonOf(err), exp)
	}
}

func TestTokensSign_RefusesInvalidActors(t *testing.T) {
	tokens, _ := newTokens(t, 0)
	for name, a := range map[string]seckill.Actor{
		"no id":           {Role: seckill.Buyer},
		"long id":         {ID: strings.Repeat("x", userid.MaxLen+1), Role: seckill.Buyer},
		"id of two words": {ID: "a b", Role: seckill.Buyer},
		"no role":         {ID: "1"},
		"unknown role":    {ID: "1", Role: "root"},
		"long name":       {ID: "1", Role: seckill.Buyer, Name: strings.Repeat("n", MaxName+1)},
		"control":         {ID: "1", Role: seckill.Buyer, Name: "a\nb"},
		"broken UTF-8":    {ID: "1", Role: seckill.Buyer, Name: "\xff"},
		"long phone":      {ID: "1", Role: seckill.Buyer, Phone: strings.Repeat("1", maxPhone+1)},
		"long address":    {ID: "1", Role: seckill.Buyer, Email: strings.Repeat("e", maxEmail+1)},
		"phone control":   {ID: "1", Role: seckill.Buyer, Phone: "1\x002"},
	} {
		_, err := tokens.Sign(a, time.Minute)
		require.ErrorIs(t, err, errClaims, name)
	}
}

func TestNew_RefusesAShortSecret(t *testing.T) {
	_, err := New(secret[:31], 0, time.Now)
	require.ErrorIs(t, err, ErrShortSecret)
}

func TestTokensVerify_RefusalRepeatsNoPartOfTheToken(t *testing.T) {
	tokens, c := newTokens(t, 0)
	token := must.Get(tokens.Sign(seckill.Actor{ID: "7", Role: seckill.Buyer, Name: "Ann"},
		time.Minute))(t)
	_, err := tokens.Verify(token + "x")
	e := err.(*apierror.Error) //nolint:errorlint // Verify promises this exact type
	require.Equal(t, "the token is not valid", e.Message)
	c.Add(time.Hour)
	_, err = tokens.Verify(token)
	require.Equal(t, "the token has expired",
		err.(*apierror.Error).Message) //nolint:errorlint // as above
}

// TestTokensVerify_NamesTypesToTheirSigner checks that a back end whose user ids are numbers reads
// why its token is refused. A stranger's token gets no such message.
func TestTokensVerify_NamesTypesToTheirSigner(t *testing.T) {
	tokens, c := newTokens(t, 0)
	payload := fmt.Sprintf(`{"sub":7,"role":"buyer","exp":%d}`, c.Now().Unix()+60)
	_, err := tokens.Verify(signed(`{"alg":"HS256"}`, payload, string(secret)))
	require.ErrorContains(t, err, "the token's claims can't be read: sub, role, name")
	_, err = tokens.Verify(signed(`{"alg":"HS256"}`, payload, "another key"))
	require.ErrorContains(t, err, "the token is not valid")
}

func FuzzTokens_Verify(f *testing.F) {
	tokens, _ := newTokens(f, 0) // its clock makes each fuzzing process sign the same token
	good := must.Get(tokens.Sign(seckill.Actor{ID: "7", Role: seckill.Buyer}, time.Hour))(f)
	f.Add(good)
	f.Add(good + "\n")
	f.Add("a.b.c")
	f.Add("")
	f.Fuzz(func(t *testing.T, token string) {
		a, err := tokens.Verify(token)
		if err == nil && token != good {
			t.Fatalf("Verify accepted %q as %v", token, a)
		}
		if err != nil && apierror.ReasonOf(err) != apierror.Unauthenticated {
			t.Fatal(err)
		}
	})
}

func TestTokensVerify_CacheIsBoundedAndKeepsUsedTokens(t *testing.T) {
	tokens, _ := newTokens(t, 10)
	sign := func(id int64) string {
		return must.Get(tokens.Sign(seckill.Actor{ID: fmt.Sprint(id), Role: seckill.Buyer},
			time.Hour))(t)
	}
	used := sign(1)
	for id := range int64(100) {
		for _, token := range []string{used, sign(id + 2)} {
			must.Get(tokens.Verify(token))(t)
		}
		require.True(t, tokens.cache.Contains(sha256.Sum256([]byte(used))))
		require.LessOrEqual(t, tokens.cache.Len(), 10)
	}
}
