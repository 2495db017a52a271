package web

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/must"
)

// TestAssets_AreWithoutCommentsAndTextsOfTemplates checks what scripts get and what they do not.
func TestAssets_AreWithoutCommentsAndTextsOfTemplates(t *testing.T) {
	s := must.Get(New("CNY", Brand{}))(t)
	get := func(name string) string {
		a, found := s.Asset(s.assets.version, name)
		require.True(t, found, name)
		return string(a.Body)
	}
	words := get("words-en.js")
	for _, name := range []string{
		"reason.SOLD_OUT", "card.buy", "failure.LOST", "orders.pay.going", "remind.off", "status.paid",
		"purchase.thanks", "address.wrong.email",
	} {
		require.Contains(t, words, `"`+name+`"`)
	}
	require.NotContains(t, words, "stop.missing")
	require.NotContains(t, words, "draw.position")
	require.Contains(t, get("draw-words-en.js"), `"draw.position"`)
	require.Contains(t, get("console-words-zh.js"), `"gate.SHUT"`)
	for line := range strings.Lines(get("counter.js")) {
		require.NotRegexp(t, `^\s*(//|/\*|\* )`, line)
	}
	require.Contains(t, get("counter.js"), "export class Counter {")
}
