package browser

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill"
)

// TestPages_AgreeOnACurrencyOfTheSale shows amounts in forints. Chromium's own table gives them no
// digits, and ISO 4217 gives them two. The pages show them so whether or not they can read the
// sale, and a copy of the sale has its currency.
func TestPages_AgreeOnACurrencyOfTheSale(t *testing.T) {
	t.Parallel()
	h := standalone(t)
	merchant := h.client(t, seckill.Merchant, 1)
	now := time.Now().UTC()
	var made struct{ GoodsID string }
	require.NoError(t, merchant.Do(t.Context(), "POST", "/admin/sales", map[string]any{
		"title": "A thing from Budapest", "price": 12345, "stock": 9, "currency": "HUF",
		"startAt": now.Add(-time.Minute), "endAt": now.Add(time.Hour),
	}, &made))
	require.NoError(t,
		merchant.Do(t.Context(), "POST", "/admin/sales/"+made.GoodsID+"/expose", nil, &made))
	sn := h.won(t, 170, made.GoodsID, 1)

	v := h.buyer(t, 170, `window.meddle = (path) => path.startsWith('/sales') && sessionStorage.blind ?
		new Response('{}', {status: 404}) : null;`)
	v.open("/s/" + made.GoodsID)
	v.sees(".price", "Ft123.45")
	for _, blind := range []string{"", "yes"} {
		v.run(`sessionStorage.blind = '` + blind + `'`)
		v.open("/")
		v.sees(order+" .sum", "Ft\u00a0123.45")
		v.open("/o/" + sn)
		v.sees(".lines .total", "Ft\u00a0123.45")
	}

	mei := h.enters(t, desktop, seckill.Merchant, 1, "Mei")
	mei.before(`const real = window.fetch.bind(window); window.fetch = async (path, options) => {
		if (path === '/admin/sales/` + made.GoodsID + `') await new Promise((done) => setTimeout(done, 1000));
		return real(path, options); };`)
	mei.open("/console/sales/" + made.GoodsID)
	mei.sees("#bought", "Ft\u00a0123.45")
	mei.open("/console?copy=" + made.GoodsID)
	mei.becomes("filled", `document.getElementById('n-price').value === '123.45'`)
	mei.sees("label[for=n-price]", "(HUF)")
	mei.press("#new button[value=draft]")
	mei.becomes("made", `location.pathname.startsWith('/console/sales/')`)
	mei.sees("[data-part=price]", "Ft\u00a0123.45")
}
