package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/waitingroom"
)

const (
	drawSeed       = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
	drawCommitment = "630dcd2966c4336691125448bbb25b4ff412a49c732db2c8abc1b8581bd710dd"
	drawDigest     = "da39a3ee5e6b4b0d3255bfef95601890afd80709"
)

// verifyDraw runs the command and returns its output and exit code.
func verifyDraw(t *testing.T, stdin string, args ...string) (string, int) {
	t.Helper()
	var out strings.Builder
	err := withExitCode(runWith(t.Context(), append([]string{"draw", "verify"}, args...),
		strings.NewReader(stdin), &out, io.Discard))
	var exit *exitError
	if errors.As(err, &exit) {
		return out.String(), exit.ExitCode()
	}
	require.NoError(t, err)
	return out.String(), 0
}

func TestDrawVerify_PrintsPositions(t *testing.T) {
	flags := []string{"--seed", drawSeed, "--digest", drawDigest, "--size", "20000"}
	out, code := verifyDraw(t, "", append(flags, "1", "20000", "20001")...)
	require.Zero(t, code)
	require.Equal(t, "number 1 has position 4946\nnumber 20000 has position 15721\n"+
		"number 20001 has position 20001\n", out)

	out, code = verifyDraw(t, "",
		append(flags, "--commitment", drawCommitment, "-o", "json", "1")...)
	require.Zero(t, code)
	var result drawResult
	require.NoError(t, json.Unmarshal([]byte(out), &result))
	require.Equal(t, []waitingroom.Place{{Number: 1, Position: 4946}}, result.Places)

	_, code = verifyDraw(t, "", append(flags, "--commitment", drawSeed, "1")...)
	require.Equal(t, codeBadDraw, code)
}

func TestDrawVerify_FindsASwappedPositionInAFile(t *testing.T) {
	claims := drawFile{Published: waitingroom.Published{
		Commitment: drawCommitment, Seed: drawSeed, Digest: drawDigest, Size: 100,
	}}
	draw := must.Get(claims.Draw())(t)
	for number := int64(1); number <= 100; number++ {
		place := waitingroom.Place{Number: number, Position: draw.Position(number)}
		claims.Places = append(claims.Places, place)
	}
	text := func() string { return string(must.Get(json.Marshal(claims))(t)) }
	out, code := verifyDraw(t, text(), "--file", "-")
	require.Zero(t, code)
	require.Equal(t, "100 places checked, 0 wrong\n", out)

	a, b := &claims.Places[20].Position, &claims.Places[70].Position
	*a, *b = *b, *a
	file := filepath.Join(t.TempDir(), "draw.json")
	require.NoError(t, os.WriteFile(file, []byte(text()), 0o600))
	out, code = verifyDraw(t, "", "--file", file)
	require.Equal(t, codeBadDraw, code)
	require.Contains(t, out, "number 21 claims")
	require.Contains(t, out, "number 71 claims")
	require.Contains(t, out, "100 places checked, 2 wrong")

	out, code = verifyDraw(t, `{"code": 200, "data": `+text()+`}`, "--file", "-")
	require.Equal(t, codeBadDraw, code, "places in the status of an answer")
	require.Contains(t, out, "100 places checked, 2 wrong")
}

func TestDrawVerify_ChecksTheCommitmentOfAStatusWithoutPlaces(t *testing.T) {
	status := `{"phase": "running", "joined": 7, "drawCommitment": "` + drawCommitment +
		`", "drawSeed": "` + drawSeed + `", "drawDigest": "", "drawSize": 5}`
	for _, text := range []string{status, `{"code": 200, "data": ` + status + `}`} {
		out, code := verifyDraw(t, text, "--file", "-")
		require.Zero(t, code, text)
		require.Equal(t, "the seed is the one that was committed to\n", out)
		_, code = verifyDraw(t, strings.Replace(text, "630", "730", 1), "--file", "-")
		require.Equal(t, codeBadDraw, code)
	}
}

func TestDrawVerify_RefusesAWrongCommandLine(t *testing.T) {
	for _, args := range [][]string{
		nil,
		{"1"},
		{"--seed", drawSeed},
		{"--seed", drawSeed, "--size", "5", "0"},
		{"--seed", "00", "1"},
		{"--seed", drawSeed, "--size", "4294967296", "1"},
		{"--seed", drawSeed, "--file", "-"},
		{"--file", "-", "--size", "5"},
		{"--file", "none.json"},
		{"--file", "-"},
	} {
		_, code := verifyDraw(t, "no JSON", args...)
		require.Equal(t, codeUsage, code, "%v", args)
	}
}
