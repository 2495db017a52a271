package browser

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill"
)

// TestConsole_MakesAndRevokesAnAPIKey makes a key by keyboard, calls the API with it as a program
// does, and revokes it. The page shows the key once. A phone shows the same page in Chinese.
func TestConsole_MakesAndRevokesAnAPIKey(t *testing.T) {
	t.Parallel()
	h := standalone(t)
	for i, d := range []device{desktop, phone.at(true).in("zh-CN")} {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			makesAKey(t, h, d, int64(20+i))
		})
	}
}

func makesAKey(t *testing.T, h fixture, d device, merchant int64) {
	mei := h.enters(t, d, seckill.Merchant, merchant, "Mei")
	mei.open("/console/keys")
	mei.becomes("empty", `!document.getElementById('none').hidden`)
	mei.tabs("[data-open=new]")
	mei.key("\r")
	mei.fitsEverybody("a new key")
	mei.tabs("#new [value=yes]")
	mei.key("\r")
	mei.becomes("incomplete", `document.querySelector('#new .say').dataset.kind === 'no'`)
	mei.tabs("#k-name")
	mei.key("stock system")
	mei.tabs("[value='sales:read']")
	mei.key(" ")
	mei.tabs("#new [value=yes]")
	mei.key("\r")
	mei.becomes("shown", `document.getElementById('secret-text').value.startsWith('sk_') &&
				document.activeElement.id === 'secret-text'`)
	mei.fitsEverybody("the key")
	key := ask[string](mei, `document.getElementById('secret-text').value`)
	mei.tabs("#secret [value='']")
	mei.key("\r")
	mei.becomes("hidden", `document.getElementById('secret-text').value === ''`)
	require.False(t, mei.is(fmt.Sprintf(`document.documentElement.outerHTML.includes(%q)`,
		key)), "the page has the key no more")
	status := fmt.Sprintf(`fetch('/admin/sales', {credentials: 'omit', cache: 'no-store',
				headers: {Authorization: 'Bearer %s'}}).then((r) => r.status)`, key)
	require.Equal(t, 200, ask[int](mei, status))
	mei.open("/console/keys")
	mei.sees("#keys b", "stock system")
	mei.sees("#keys",
		map[bool]string{true: "See sales and figures", false: "查看活动和数据"}[d == desktop])
	mei.fitsEverybody("keys")
	mei.tabs("#keys [data-part=revoke]")
	mei.key("\r")
	mei.fitsEverybody("revoking")
	mei.tabs("#revoke [value=yes]")
	mei.key("\r")
	mei.becomes("revoked", `!document.querySelector('#keys [data-part=state]').hidden &&
				document.getElementById('say').dataset.kind === 'yes'`)
	mei.becomes("refused", `window.status === '401' || (`+status+
		`.then((s) => { window.status = String(s); }), false)`)
}
