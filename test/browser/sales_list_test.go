package browser

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/loadgen/apiclient"
	"flashsale.dev/seckill/internal/seckill"
)

// TestConsole_ListsManySales searches, filters and sorts 500 sales of a merchant. One has sold.
func TestConsole_ListsManySales(t *testing.T) {
	t.Parallel()
	h := standalone(t)
	api, now := h.client(t, seckill.Merchant, 1), time.Now().UTC()
	sold := h.sells(t, sale{title: kettle, price: 1234, stock: 9, perBuyer: 5})
	for i := range 499 {
		body := apiclient.NewSale{
			Title: fmt.Sprintf("Lamp %03d", i), Price: 100, Stock: 5, PerBuyerLimit: 1,
			StartAt: now.Add(time.Hour), EndAt: now.Add(2 * time.Hour),
		}
		require.NoError(t, api.Do(t.Context(), "POST", "/admin/sales", body, &json.RawMessage{}))
	}
	paid, unpaid := h.won(t, 5, sold, 2), h.won(t, 6, sold, 1)
	buyer := h.client(t, seckill.Buyer, 5)
	require.NoError(t, buyer.Do(t.Context(), "POST", "/orders/"+paid+"/pay", nil,
		&json.RawMessage{}))
	require.NotEqual(t, paid, unpaid)

	for _, d := range []device{desktop, narrow.in("zh-CN")} {
		mei := visit(t, h.base, d)
		mei.before(`new MutationObserver((_, o) => { if (document.querySelector('#sales li')) {
			window.firstRow = performance.now(); o.disconnect(); } }
		).observe(document, {childList: true, subtree: true})`)
		mei.signIn(h.token(t, seckill.Merchant, 1, "Mei"))
		mei.open("/console")
		mei.becomes("all are known", `/^20 of 500 sales$|^500 个活动中的 20 个$/.test(
			document.getElementById('found').innerText)`)
		rows := func() int { return ask[int](mei, `document.querySelectorAll('#sales li').length`) }
		require.Equal(t, 20, rows())
		t.Logf("%s: the first row %.0f ms after the answer", d.name, ask[float64](mei,
			`firstRow - performance.getEntriesByType('resource').find(
				(e) => e.name.endsWith('/admin/sales?limit=20')).responseEnd`))
		mei.press("#more")
		require.Equal(t, 40, rows())
		mei.light("a console with 500 sales")
		mei.fitsEverybody("a console with 500 sales")

		mei.fill("#c-title", "KETTLE")
		require.Equal(t, 1, rows(), "the oldest sale of all")
		mei.sees("#sales", "¥24.68")
		if d == desktop {
			mei.sees("#sales", "3 sold 6 left ¥24.68 paid")
		}
		mei.fill("#c-title", "lamp 49")
		require.Equal(t, 10-1, rows())
		mei.fill("#c-title", "")
		mei.fill("#c-phase", "ongoing")
		require.Equal(t, 1, rows())
		mei.fill("#c-phase", "draft")
		mei.fill("#c-sort", "title")
		mei.sees("#sales li:first-child", "Lamp 000")
		mei.fill("#c-phase", "")
		mei.fill("#c-sort", "revenue")
		mei.sees("#sales li:first-child", kettle)
		mei.fill("#c-title", "no such thing")
		require.Equal(t, 0, rows())
	}
}
