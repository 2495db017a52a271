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
	words := get("shop-words-en.js")
	for _, name := range []string{
		"reason.SOLD_OUT", "card.buy", "failure.LOST", "orders.pay.going",
		"remind.due", "status.paid",
	} {
		require.Contains(t, words, `"`+name+`"`)
	}
	require.NotContains(t, words, "stop.missing")
	for _, name := range []string{
		"draw.position", "address.wrong.email", "purchase.thanks", "gate.SHUT",
	} {
		require.NotContains(t, words, `"`+name+`"`)
	}
	for file, name := range map[string]string{
		"draw-words-en.js": "draw.position", "purchase-words-en.js": "address.wrong.email",
		"operations-words-zh.js": "gate.SHUT", "audit-words-en.js": "reason.NETWORK.console",
		"item-words-zh.js": "remind.off",
	} {
		require.Contains(t, get(file), `"`+name+`"`, file)
	}
	require.NotContains(t, get("shop.css"), "/*")
	require.Contains(t, get("style.css"), "\n*, ::before, ::after{box-sizing: border-box}\n")
	for line := range strings.Lines(get("counter.js")) {
		require.NotRegexp(t, `^\s*(//|/\*|\* )`, line)
		require.NotContains(t, line, "// ")
	}
	require.Contains(t, get("counter.js"), "this.place = null;\n")
	require.Contains(t, get("counter.js"), "export class Counter {")
}
