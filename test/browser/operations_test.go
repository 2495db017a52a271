package browser

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill"
)

// TestOperations_ShowFailedOrdersAndOverrides puts a dead letter into the database, and sets two
// limits. The operator's front page counts the first, and the operations page lists all. A sale
// that is being rebuilt is invented: a real rebuild is over before a page shows it.
func TestOperations_ShowFailedOrdersAndOverrides(t *testing.T) {
	t.Parallel()
	showsOperations(t, standalone(t), desktop, narrow.at(true))
}

// showsOperations is for an installation without other dead letters and limits.
func showsOperations(t *testing.T, h fixture, devices ...device) {
	goods := h.sells(t, sale{title: kettle, price: 1250})
	const sn = "1EHPB7qRzSW21NiMXIuidLmrO7yYrHNO5CU"
	body := fmt.Sprintf(`{"goodsId":"%s","orders":[{"orderSn":"%s","buyerId":"42","quantity":2,`+
		`"name":"Ann Lee"}]}`, goods, sn)
	h.exec(t, `INSERT INTO dead_letters
		(id, order_sn, goods_id, reason, attempts, first_seen_at, origin, body)
		VALUES ('01a1fc15-9a10-78e6-83a6-b45fac893a06', ?, ?, 'UNWRITABLE', 3, 1760000000000,
			'seckill.orders.1', ?)`, sn, goods, []byte(body))
	api := h.client(t, seckill.Operator, 4)

	for _, d := range devices {
		limit := map[string]float64{"permitsPerSecond": 7, "maxBurstSeconds": 2}
		for _, limiter := range []string{"randomPath/" + goods, "randomPath/*"} {
			require.NoError(t, api.Do(t.Context(), "PUT", "/admin/limiters/"+limiter, limit, nil))
		}
		ops := h.enters(t, d, seckill.Operator, 4, "Ops")
		ops.before(fmt.Sprintf(`const real = window.fetch.bind(window);
			window.fetch = (path, options) => !path.startsWith('/admin/rebuilds') ? real(path, options) :
				new Response(JSON.stringify({data: {nextCursor: null, items: [{goodsId: '%s',
					title: 'A lamp', phase: 'ongoing', gate: 'LEASE_LOST', epoch: 3, available: 1200}]}}));`,
			goods))
		ops.open("/console")
		ops.sees("#failed", "Failed orders: 1")
		ops.sees("#rebuilding", "Rebuilds under way: 1")
		ops.fitsEverybody("an operator's front page")
		ops.press("#failed a")
		ops.sees("#rebuilds", "A lamp Redis was restarted or failed over")
		ops.sees("#rebuilds", "Units left: 1,200, epoch 3")
		for _, text := range []string{sn, kettle, "Units: 2", "¥25.00", "A***", "Buyer 42"} {
			ops.sees("#dead-letters", text)
		}
		require.NotContains(t, ops.text("#dead-letters"), "Ann Lee")
		ops.becomes("buttons name the order", `
			[...document.querySelectorAll('#dead-letters .act button')].every((e) => e.ariaLabel === e.innerText + ' `+sn+`')`)
		ops.sees("#overrides", goods)
		ops.sees("#overrides", "all keys")
		ops.sees("#overrides", "7 per second")
		ops.fitsEverybody("operations with failed orders")
		ops.light("operations")
		ops.press("#overrides [data-part=remove]")
		ops.fitsEverybody("removing")
		ops.press("#remove [value='']")
		for left := 2; left > 0; left-- {
			ops.becomes("listed",
				fmt.Sprintf(`document.querySelectorAll('#overrides > li').length === %d`, left))
			ops.press("#overrides [data-part=remove]")
			ops.press("#remove [value=yes]")
			ops.sees("#overrides-say", "Removed.")
			ops.becomes("the focus is on the page", `document.activeElement.id === 'main'`)
		}
		ops.sees("#overrides-none", "No override.")
		ops.press("#dead-letters [data-part=discard]")
		ops.fitsEverybody("discarding")
		ops.press("#discard [value='']")
	}
}

// TestOperations_ResolveStoppedRefunds puts two refunds that stopped into the database. An operator
// settles one and tries the other again, which the refunder then makes. The audit log has both.
func TestOperations_ResolveStoppedRefunds(t *testing.T) {
	t.Parallel()
	h := standalone(t)
	goods := h.sells(t, sale{title: kettle, price: 1250})
	api := h.client(t, seckill.Operator, 4)
	for i, d := range []device{desktop, narrow.at(true)} {
		settled, again := fmt.Sprintf("pay_settled_%d", i), fmt.Sprintf("pay_again_%d", i)
		for _, payment := range []string{settled, again} {
			h.exec(t, `INSERT INTO payments (payment_id, goods_id, order_sn, amount, state, reason,
				attempts, received_at, refund_since, refund_tried_at, refund_problem)
				VALUES (?, ?, ?, 1250, 'refunding', 'CANCELLED', 7, 1760000000000, 1760000000000,
					1760250000000, 'charge_disputed')`, payment, goods, "sn-"+payment)
		}
		ops := h.enters(t, d, seckill.Operator, 4, "Ops")
		ops.open("/console/operations")
		for _, text := range []string{
			"¥12.50", "Stopped", "charge_disputed", "Attempts: 7", settled, again,
		} {
			ops.sees("#refunds", text)
		}
		ops.fitsEverybody("operations with stopped refunds")

		ops.press(refundRow(settled, "settle"))
		ops.fitsEverybody("settling")
		ops.press("#settle [value='']")
		ops.sees("#refunds", settled)
		ops.press(refundRow(settled, "settle"))
		ops.press("#settle [value=yes]")
		ops.sees("#refunds-say", "The refund is settled.")
		ops.becomes("removed",
			`!document.getElementById('refunds').innerText.includes('`+settled+`')`)
		require.Contains(t, ops.text("#refunds"), again)
		ops.becomes("the focus is on the page", `document.activeElement.id === 'main'`)

		ops.press(refundRow(again, "retry"))
		ops.sees("#refunds-say", "The refund is tried again.")
		require.Eventually(t, func() bool {
			var open json.RawMessage
			require.NoError(t, api.Do(t.Context(), "GET", "/admin/refunds", nil, &open))
			return !strings.Contains(string(open), "pay_")
		}, time.Minute, 50*time.Millisecond, "the refunder returns the money")
		ops.open("/console/operations")
		ops.sees("#refunds-none", "No refund is waiting.")

		for payment, action := range map[string]string{
			settled: "settleRefund", again: "retryRefund",
		} {
			var entries json.RawMessage
			require.NoError(t, api.Do(t.Context(), "GET", "/admin/audit?limit=1&action="+action, nil,
				&entries))
			require.Contains(t, string(entries), `"paymentId":"`+payment+`"`)
			require.Contains(t, string(entries), `"actorId":"4"`)
		}
	}
}

// refundRow selects a button of a refund. Its label ends with the order's number.
func refundRow(payment, button string) string {
	return `#refunds [data-part=` + button + `][aria-label$="sn-` + payment + `"]`
}
