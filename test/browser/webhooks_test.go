package browser

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill"
)

// TestWebhooks_FromTheFirstToTheLastDelivery creates a webhook in the console, whose receiver fails
// first. It sends a dead delivery again, changes, pauses and deletes the webhook.
func TestWebhooks_FromTheFirstToTheLastDelivery(t *testing.T) {
	t.Parallel()
	usesWebhooks(t, standalone(t, allowsLoopback))
}

// allowsLoopback lets webhooks reach a receiver of the tests.
const allowsLoopback = "SECKILL_WEBHOOK_ALLOW=127.0.0.1"

// usesWebhooks is for a merchant who did nothing else, because it compares the whole audit trail.
func usesWebhooks(t *testing.T, h fixture) {
	const merchant = 30
	var works atomic.Bool
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !works.Load() {
			w.WriteHeader(http.StatusTeapot)
		}
	}))
	t.Cleanup(receiver.Close)
	mei := h.enters(t, narrow, seckill.Merchant, merchant, "Mei")
	mei.createsWebhook(receiver.URL)
	goods := h.sells(t, sale{title: kettle, merchant: merchant})
	mei.press("#hooks a")
	mei.sees("#deliveries", "Your program answered with status 418.")
	mei.sees("#deliveries", "Pending")
	mei.fitsEverybody("a failing webhook")
	mei.light("a webhook")

	deadline := time.Now().Add(patience)
	for h.exec(t, `UPDATE webhook_deliveries SET state = 'dead', ended_at = created_at, next_at = NULL
		WHERE next_at > ?`, time.Now().Add(time.Second).UnixMilli()) == 0 {
		// An attempt is running, or soon will. It would make the delivery pending again.
		require.True(t, time.Now().Before(deadline), "no delivery waits for its next attempt")
		time.Sleep(100 * time.Millisecond)
	}
	mei.sees("#hook", "1 dead")
	mei.fill("#filter", "dead")
	mei.sees("#deliveries", "Dead")
	mei.becomes("the button names the delivery", `document.querySelector(
		'#deliveries [data-part=retry]').ariaLabel.startsWith('Send again: Events')`)
	mei.becomes("the title names the webhook", `document.title.startsWith('http')`)
	mei.fitsEverybody("a dead delivery")
	works.Store(true)
	mei.press("#deliveries [data-part=retry]")
	mei.sees("#say", "It is sent again.")
	mei.fill("#filter", "delivered")
	mei.sees("#deliveries", "Delivered")
	mei.becomes("none is dead", `document.querySelector('#hook [data-part=dead]').innerText === ''`)

	mei.changesWebhook(receiver.URL)
	var log struct{ Items []struct{ Action string } }
	api := h.client(t, seckill.Merchant, merchant)
	require.NoError(t, api.Do(t.Context(), "GET", "/admin/audit", nil, &log))
	actions := []string{}
	for _, e := range log.Items {
		actions = append(actions, e.Action)
	}
	require.Equal(t, []string{
		"deleteWebhook", "rotateSecret", "changeWebhook", "changeWebhook", "changeWebhook",
		"retryDelivery", "expose", "create", "createWebhook",
	}, actions)
	require.NoError(t, api.Do(t.Context(), "POST", "/admin/sales/"+goods+"/close", nil, nil))
}

// createsWebhook fills in the form, after a wrong form and a forbidden address, and sees the secret
// once.
func (v *visitor) createsWebhook(url string) {
	v.t.Helper()
	v.open("/console/webhooks")
	v.sees("#none", "No webhook yet.")
	v.fitsEverybody("no webhook")
	v.press("[data-open=new]")
	v.fill("#h-batch", "501")
	v.press("#new button[value=yes]")
	v.sees("#w-url", "Please fill this in.")
	v.sees("#w-batch", "A whole number from 1 to 500.")
	v.fill("#h-batch", "50")
	v.fill("#h-url", "https://10.0.0.1/hook")
	v.press("#new button[value=yes]")
	v.sees("#w-url", "This address is not allowed.")
	v.fitsEverybody("a new webhook")
	v.fill("#h-url", url)
	v.press("#new [value='sale.exposed']")
	v.press("#new button[value=yes]")
	v.becomes("the secret", `document.getElementById('secret-text').value.startsWith('whsec_')`)
	v.fitsEverybody("a secret")
	v.press("#secret button[value='']")
	v.becomes("forgotten", `document.getElementById('secret-text').value === ''`)
	v.sees("#hooks", "Sale published")
}

// changesWebhook edits, pauses, enables, rotates and deletes the webhook of the open page.
func (v *visitor) changesWebhook(url string) {
	v.t.Helper()
	v.press("[data-open=edit]")
	v.fill("#h-url", url+"/"+"other")
	v.press("#edit [value='order.paid']")
	v.press("#edit button[value=yes]")
	v.sees("#say", "Saved.")
	v.sees("#hook", "Order paid")
	v.press("#switch")
	v.sees("#hook .chip", "Paused")
	v.press("#switch")
	v.sees("#hook .chip", "Active")
	v.press("[data-open=rotate]")
	v.press("#rotate button[value=yes]")
	v.becomes("the secret", `document.getElementById('secret-text').value.startsWith('whsec_')`)
	v.press("#secret button[value='']")
	v.sees("#say", "The one before signs too until")
	v.press("[data-open=delete]")
	v.press("#delete button[value=yes]")
	v.sees("#none", "No webhook yet.")
}
