package ordersn

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"flashsale.dev/seckill/internal/testing/property"
)

func TestNumber_PathAndNumberContainTheSame(t *testing.T) {
	k := NewKeys([]byte("secret"))
	property.Check(t, func(t *rapid.T) {
		goods := rapid.Int64Min(1).Draw(t, "goods")
		buyer := rapid.StringMatching(`[!-~]{1,64}`).Draw(t, "buyer")
		now := time.UnixMilli(rapid.Int64Range(1_735_689_600_000, 3_880_000_000_000).Draw(t, "now"))
		age := time.Duration(rapid.Int64Range(-5*86400, 365*86400).Draw(t, "age")) * time.Second
		made := k.Issue(goods, buyer, now)
		require.Regexp(t, `^[0-9A-Za-z]{35}$`, made.String())
		require.Regexp(t, `^[0-9a-f]{32}$`, made.Path())
		require.True(t, now.Equal(made.IssuedAt()))
		byPath, err := k.VerifyPath(made.Path(), goods, buyer, now.Add(age))
		require.NoError(t, err)
		require.Equal(t, made, byPath)
		byNumber, err := k.Verify(made.String(), buyer)
		require.NoError(t, err)
		require.Equal(t, made, byNumber)
		id := ID(made.String())
		require.Equal(t, id, ID(made.String()))
		require.Equal(t, uuid.Version(7), id.Version())
		require.Equal(t, uuid.RFC4122, id.Variant())
	})
}

func TestNumber_SortsByTimeAndNeverRepeats(t *testing.T) {
	k, now := NewKeys([]byte("secret")), time.UnixMilli(1_790_000_000_123)
	var numbers, paths []string
	for i := range 1000 {
		n := k.Issue(7, "1", now.Add(time.Duration(i/10)*37*time.Millisecond))
		numbers, paths = append(numbers, n.String()), append(paths, n.Path())
	}
	for i, sn := range numbers[10:] {
		require.Greater(t, sn, numbers[i], "of a later millisecond")
	}
	slices.Sort(paths)
	require.Len(t, slices.Compact(paths), 1000)
	later := now.Add(2 * time.Second)
	require.Less(t, numbers[0], FirstAt(later))
	require.Greater(t, k.Issue(7, "1", later).String(), FirstAt(later))
	require.Less(t, legacyNumber("secret", 7, 1), numbers[0], "earlier releases' sort before")
}

func TestVerify_RejectsForeign(t *testing.T) {
	k, now := NewKeys([]byte("secret")), time.Now()
	n := k.Issue(42, "7", now)
	sn, path := n.String(), n.Path()
	other := NewKeys([]byte("another")).Issue(42, "7", now)
	for name, s := range map[string]string{
		"empty": "", "short": sn[:Len-1], "long": sn + "0", "another secret's": other.String(),
		"too large": strings.Repeat("z", Len), "outside the alphabet": sn[:Len-1] + "-",
		"line break": sn[:10] + "\n" + sn[11:], "an invented old one": strings.Repeat("0", 58),
	} {
		_, err := k.Verify(s, "7")
		require.ErrorIs(t, err, errForeign, name)
	}
	for name, s := range map[string]string{
		"empty": "", "short": path[:31], "long": path + "0", "upper case": strings.ToUpper(path),
		"no digit": path[:31] + "g", "another secret's": other.Path(),
	} {
		_, err := k.VerifyPath(s, 42, "7", now)
		require.ErrorIs(t, err, errForeign, name)
	}
	changed := func(s string, i int) string {
		c := byte('0')
		if s[i] == c {
			c = '1'
		}
		return s[:i] + string(c) + s[i+1:]
	}
	for i := range Len {
		_, err := k.Verify(changed(sn, i), "7")
		require.ErrorIs(t, err, errForeign, "digit %d changed", i)
	}
	for i := range pathLen {
		_, err := k.VerifyPath(changed(path, i), 42, "7", now)
		require.ErrorIs(t, err, errForeign, "digit %d changed", i)
	}
	_, err := k.Verify(sn, "8")
	require.ErrorIs(t, err, errForeign, "another buyer's")
	_, err = k.VerifyPath(path, 42, "8", now)
	require.ErrorIs(t, err, errForeign, "another buyer's")
	_, err = k.VerifyPath(path, 43, "7", now)
	require.ErrorIs(t, err, errForeign, "another goods'")
}

// TestVerifyPath_KnowsPathsForAYear checks the ends of the time for which a used path returns its
// order.
func TestVerifyPath_KnowsPathsForAYear(t *testing.T) {
	k, day, now := NewKeys([]byte("secret")), 24*time.Hour, time.Now()
	n := k.Issue(42, "7", now)
	got, err := k.VerifyPath(n.Path(), 42, "7", now.Add(381*day))
	require.NoError(t, err)
	require.Equal(t, n, got)
	_, err = k.VerifyPath(n.Path(), 42, "7", now.Add(400*day))
	require.ErrorIs(t, err, errForeign)
}

func TestKeys_FirstSignsAllVerify(t *testing.T) {
	before, now := NewKeys([]byte("old")), time.Now()
	rotated := NewKeys([]byte("new"), []byte("old"))
	n := before.Issue(42, "7", now)
	for range 2 {
		_, err := rotated.Verify(n.String(), "7")
		require.NoError(t, err)
		_, err = rotated.VerifyPath(n.Path(), 42, "7", now)
		require.NoError(t, err)
		n = NewKeys([]byte("new")).Issue(42, "7", now)
	}
	_, err := before.Verify(n.String(), "7")
	require.ErrorIs(t, err, errForeign)
}

// legacyNumber makes a number as the releases before did.
func legacyNumber(secret string, goodsID, epoch int64) string {
	id := uuid.Must(uuid.NewV7())
	raw := binary.BigEndian.AppendUint64(id[:], uint64(goodsID))
	raw = binary.BigEndian.AppendUint32(raw, uint32(epoch))
	mac := hmac.New(sha256.New, Derive([]byte(secret), "flashsale order number"))
	mac.Write(raw)
	return legacyEncoding.EncodeToString(append(raw, mac.Sum(nil)[:8]...))
}

func TestParse_ReadsNumbersOfEarlierReleases(t *testing.T) {
	sn := legacyNumber("old", 42, 3)
	n, err := NewKeys([]byte("new"), []byte("old")).Verify(sn, "7")
	require.NoError(t, err)
	require.Equal(t, []int64{42, 3}, []int64{n.GoodsID, n.Epoch})
	require.WithinDuration(t, time.Now(), n.IssuedAt(), time.Minute)
	raw, err := legacyEncoding.DecodeString(sn)
	require.NoError(t, err)
	require.Equal(t, uuid.UUID(raw[:16]), ID(sn))
	_, err = NewKeys([]byte("new")).Verify(sn, "7")
	require.ErrorIs(t, err, errForeign)
	_, err = NewKeys([]byte("old")).Verify(sn[:57]+"v", "7")
	require.ErrorIs(t, err, errForeign)
	_, err = NewKeys([]byte("old")).Verify(sn[:57]+string(sn[57]+1), "7")
	require.ErrorIs(t, err, errForeign, "two bits of the last digit are not used and must be zero")
}

// TestVerify_KnowsNumbersOfOtherBuilds has a number and a path that an earlier build made. Orders
// and nodes of another release have such ones.
func TestVerify_KnowsNumbersOfOtherBuilds(t *testing.T) {
	k, issued := NewKeys([]byte("secret")), time.UnixMilli(1_790_000_000_123).UTC()
	const sn = "1E2xewYaeIaYFKOiDDzDmRFoWiuYHYpOB6Q"
	n, err := k.Verify(sn, "7")
	require.NoError(t, err)
	require.Equal(t, int64(42), n.GoodsID)
	require.Equal(t, issued, n.IssuedAt())
	require.Equal(t, "01a0c450-6c7b-7a5e-8768-d5a567cecfdb", ID(sn).String())
	byPath, err := k.VerifyPath("13b801ed966a3d2be742253e445646a3", 42, "7", issued)
	require.NoError(t, err)
	require.Equal(t, n, byPath)
}

// FuzzParse checks that a number that parses is written the same.
func FuzzParse(f *testing.F) {
	k := NewKeys([]byte("secret"))
	f.Add(k.Issue(1, "1", time.Now()).String())
	f.Add(legacyNumber("secret", 1, 1))
	f.Fuzz(func(t *testing.T, s string) {
		if n, err := k.Parse(s); err == nil && len(s) == Len && n.String() != s {
			t.Fatalf("%q parsed, but is written %q", s, n)
		}
	})
}

// FuzzVerifyPath checks that a path that verifies is written the same.
func FuzzVerifyPath(f *testing.F) {
	k, now := NewKeys([]byte("secret")), time.Now()
	f.Add(k.Issue(1, "1", now).Path())
	f.Fuzz(func(t *testing.T, s string) {
		if n, err := k.VerifyPath(s, 1, "1", now); err == nil && n.Path() != s {
			t.Fatalf("%q verified, but is written %q", s, n.Path())
		}
	})
}

// FuzzIsPath compares IsPath with a regular expression.
func FuzzIsPath(f *testing.F) {
	good := strings.Repeat("0a", 16)
	for _, path := range []string{
		"", good, good[1:], good + "0", strings.ToUpper(good), good[:31] + "g", good[:30] + "é",
		good[:31] + "\n",
	} {
		f.Add(path)
	}
	like := regexp.MustCompile(`\A[0-9a-f]{32}\z`)
	f.Fuzz(func(t *testing.T, path string) {
		require.Equal(t, like.MatchString(path), IsPath(path))
	})
}
