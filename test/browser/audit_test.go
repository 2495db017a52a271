package browser

import (
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill"
)

// TestAudit_IsFilteredAndPaged lists what a merchant and an operator did with the merchant's sales,
// on a phone and a desktop.
func TestAudit_IsFilteredAndPaged(t *testing.T) {
	t.Parallel()
	filtersTheAudit(t, standalone(t), desktop, narrow.at(true))
}

// filtersTheAudit is for a merchant who did nothing else, because it counts the whole audit trail.
func filtersTheAudit(t *testing.T, h fixture, devices ...device) {
	const seller = 31
	goods := h.sells(t, sale{title: kettle, price: 5000, merchant: seller})
	lamp := h.sells(t, sale{title: "Reading lamp", merchant: seller})
	operator := h.client(t, seckill.Operator, 4)
	for limit := range 18 {
		body := map[string]int{"perBuyerLimit": limit + 2}
		require.NoError(t, operator.Do(t.Context(), "PATCH", "/admin/sales/"+goods, body, nil))
	}
	var key struct{ ID string }
	require.NoError(t, operator.Do(t.Context(), "POST", "/admin/api-keys",
		map[string]any{"name": "erp", "scopes": []string{"sales:read"}, "merchantId": "31"}, &key))
	require.NoError(t, operator.Do(t.Context(), "DELETE", "/admin/api-keys/"+key.ID, nil, nil))
	require.NoError(t, operator.Do(t.Context(), "PUT", "/admin/limiters/randomPath/"+lamp,
		map[string]int{"permitsPerSecond": 7}, nil))
	sn := h.won(t, 5, goods, 1)
	merchant := h.client(t, seckill.Merchant, seller)
	require.NoError(t, merchant.Do(t.Context(), "POST", "/admin/orders/"+sn+"/cancel", nil, nil))

	for _, d := range devices {
		mei := h.enters(t, d, seckill.Merchant, seller, "Mei")
		mei.open("/console/sales/" + goods)
		mei.press("a[href^='/console/audit']")
		mei.sees("#entries > li:first-child", "Order cancelled Order "+sn)
		mei.sees("#entries > li:nth-child(2)", "Operator 4")
		rows := `document.querySelectorAll('#entries > li').length`
		mei.becomes("a page", rows+` === 20`)
		mei.press("#choose button") // the same entries again
		mei.press("#more")
		mei.becomes("all of the sale", rows+` === 21`)
		mei.press("#entries > li:nth-child(2) summary")
		mei.sees("#entries > li:nth-child(2)", "Limit for one buyer: 18 → 19")
		mei.press("#entries > li:last-child summary")
		mei.sees("#entries > li:last-child", "Price: ¥50.00")
		mei.sees("#entries > li:last-child", "Access code: none")
		mei.fitsEverybody("the audit trail")
		mei.light("the audit trail")
		mei.fill("#a-action", "expose")
		mei.becomes("one", rows+` === 1`)
		mei.press("#entries > li summary")
		mei.sees("#entries > li", "Status: draft → published")
		mei.fill("#a-goods", "")
		mei.press("#choose button")
		mei.becomes("of both sales", rows+` === 2`)
		mei.fill("#a-goods", "12x")
		mei.press("#choose button")
		mei.sees("#w-goods", "A sale number has 1 to 19 digits.")
		mei.fill("#a-goods", "12")
		mei.press("#choose button")
		mei.sees("#w-goods", "You have no sale with this number.")
		mei.fitsEverybody("an audit trail of no sale")
		mei.fill("#a-goods", "")
		mei.fill("#a-action", "close")
		for range 2 {
			mei.press("#choose button")
			mei.becomes("none", `document.querySelector('#none').checkVisibility()`)
		}
		mei.fill("#a-goods", "")
		mei.fill("#a-action", "revokeApiKey")
		mei.sees("#entries > li:first-child", "API key revoked API key erp")
		mei.fill("#a-action", "setLimiter")
		mei.sees("#entries > li:first-child", "Rate limit set by hand Rate limit Reading lamp")
		mei.press("#entries > li:first-child summary")
		mei.sees("#entries > li:first-child", "Buyers admitted per second: 1,000 → 7")
		mei.fitsEverybody("an audit trail with a limit")
	}
}
