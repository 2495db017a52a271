package browser

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill"
)

// toTheReceipt goes a buyer's way: reserve, address, pay, confirmation, receipt. The merchant ships
// the order, and another buyer cannot open it.
func toTheReceipt(t *testing.T, h fixture) {
	goods := h.sells(t, sale{title: kettle, price: 5000, perBuyer: 5})
	v := h.buyer(t, 150, "window.printed = 0; window.print = () => window.printed++;")
	v.open("/s/" + goods + "?quantity=2")
	v.buys(goods, won)
	v.phoneShot("sale")
	v.press(card(goods) + " .say a")
	v.sees("#steps [aria-current]", "Address")
	v.sees("[data-part=left]", "Payment due in")
	sn := ask[string](v, `document.getElementById('purchase').dataset.order`)
	require.Contains(t, v.text("h1"), "Order "+sn[len(sn)-8:len(sn)-4]+"-"+sn[len(sn)-4:])
	v.sees(".lines .total", "¥100.00")

	v.fill("#a-name", "")
	v.fill("#a-country", "GB")
	v.press("#where button")
	for field, said := range map[string]string{
		"name": "Please fill this in.", "line1": "Please fill this in.",
		"city": "Please fill this in.",
	} {
		v.sees("#w-"+field, said)
	}
	v.becomes("the first has the focus", `document.activeElement.id === 'a-name'`)
	for field, text := range map[string]string{
		"name": "Ann Lee", "line1": "1 High Street", "city": "London",
		"email": "ann", "phone": "12x",
	} {
		v.fill("#a-"+field, text)
	}
	v.press("#where button")
	v.sees("#w-email", "An address such as ann@example.org")
	v.sees("#w-phone", "3 to 32 digits")
	v.fitsEverybody("an address")
	v.light("a buyer's order")
	v.fill("#a-email", "")
	v.fill("#a-phone", "+44 20 7946 0000")
	v.press("#where button")
	v.sees("#say", "The address is saved.")
	v.sees("#address", "United Kingdom")
	v.sees("#steps [aria-current]", "Payment")
	v.becomes("Pay has the focus", `document.activeElement.id === 'pay'`)
	v.fitsEverybody("an order to pay")
	v.phoneShot("receipt")
	v.press("#pay")
	v.sees("#say", "Paid. Thank you: your order is confirmed.")
	v.becomes("the focus follows", `document.activeElement.id === 'print'`)
	v.sees("#steps [aria-current]", "Confirmed")
	v.press("#change")
	v.fill("#a-line1", "2 High Street")
	v.press("#where button")
	v.sees("#address", "2 High Street")
	v.press("#print")
	require.Equal(t, 1, ask[int](v, "window.printed"))
	v.fitsEverybody("a receipt")
	v.alter(printed("print"))
	v.becomes("paper has no buttons", `document.querySelector('.paper').checkVisibility() &&
		![...document.querySelectorAll('button, .top, .foot')].some((e) => e.checkVisibility())`)
	v.alter(printed(""))

	var done json.RawMessage
	require.NoError(t, h.client(t, seckill.Merchant, 1).Do(t.Context(), "POST",
		"/admin/orders/"+sn+"/ship", map[string]string{"carrier": "Royal Mail"}, &done))
	v.open("/o/" + sn)
	v.sees("[data-part=status]", "Shipped")
	v.sees(".lines", "Royal Mail")
	v.open("/")
	v.press("#orders-list h3 a")
	v.sees("[data-part=status]", "Shipped")

	other := h.buyer(t, 151, "")
	other.open("/o/" + sn)
	other.sees("#say", "You have no order with this number.")
	stranger := visit(t, h.base, desktop)
	stranger.open("/o/" + sn)
	stranger.becomes("asked who it is", `location.search === '?to=%2Fo%2F`+sn+`'`)
}

// cancelsOnItsPage cancels an order on the order's own page, in Chinese.
func cancelsOnItsPage(t *testing.T, h fixture) {
	goods := h.sells(t, sale{title: "A thing to send back"})
	sn := h.won(t, 152, goods, 1)
	v := h.buyer(t, 152, "")
	v.open("/o/" + sn + "?lang=zh")
	v.sees("#steps [aria-current]", "填写地址")
	v.fitsEverybody("an order in Chinese")
	v.press("#cancel")
	v.press("#sure [value=cancel]")
	v.sees("[data-part=status]", "已取消")
	v.becomes("nothing is left to do", `!['pay', 'cancel', 'where', 'print'].some((id) =>
		document.getElementById(id).checkVisibility())`)
	h.sold(t, goods, 0)
}

// TestPurchase_SecondTabShowsTheAddressThatTheFirstSaves has both tabs show the empty form. A form
// in which the buyer has typed an address stays.
func TestPurchase_SecondTabShowsTheAddressThatTheFirstSaves(t *testing.T) {
	t.Parallel()
	h := standalone(t)
	sn := h.won(t, 155, h.sells(t, sale{title: kettle}), 1)
	v := h.buyer(t, 155, "")
	v.open("/o/" + sn)
	second, typing := v.secondTab(), v.secondTab()
	for _, tab := range []*visitor{second, typing} {
		tab.open("/o/" + sn)
		tab.sees("#steps [aria-current]", "Address")
	}
	typing.fill("#a-line1", "2 High Street")
	v.savesAddress("Ann Lee")
	second.sees("#address", "1 High Street")
	second.sees("#steps [aria-current]", "Payment")
	second.press("#change")
	second.becomes("the saved address",
		`document.getElementById('a-line1').value === '1 High Street'`)
	typing.sees("#steps [aria-current]", "Payment")
	typing.becomes("the form stays", `document.getElementById('a-line1').checkVisibility()`)
}

// savesAddress fills the form of an order's page, with a street in London.
func (v *visitor) savesAddress(name string) {
	v.t.Helper()
	for field, text := range map[string]string{
		"name": name, "line1": "1 High Street", "city": "London", "country": "GB",
	} {
		v.fill("#a-"+field, text)
	}
	v.press("#where button")
	v.sees("#say", "The address is saved.")
}

// printed makes a tab show the page as on a medium: "print", or "" for the screen.
func printed(medium string) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, tab *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, tab, emulation.SetEmulatedMedia,
			emulation.SetEmulatedMediaParams{Media: medium})
		return chromedp.Void{}, err
	}
}

// remindsOfTheStart sets a reminder where the browser allows notifications, and tries where it does
// not. The merchant then moves the start. The notification comes a minute before the new one, on
// any page, once. The tab's storage keeps what was shown: a slow machine may still be on the sale's
// page when the reminder is due.
func remindsOfTheStart(t *testing.T, h fixture) {
	goods := h.sells(t, sale{title: "A thing to wait for", start: time.Hour, end: 2 * time.Hour})
	v := h.buyer(t, 153, `window.Notification = class extends EventTarget {
		static permission = sessionStorage.allowed ? 'granted' : 'default';
		static async requestPermission() {
			return this.permission = sessionStorage.allowed ? 'granted' : 'denied'; }
		constructor(title, {body}) { super();
			sessionStorage.notes = (sessionStorage.notes ?? '') + title + ': ' + body + ';'; } };`)
	v.open("/s/" + goods)
	v.press("#remind")
	v.sees("#remind-say", "Your calendar can remind you.")
	v.run(`sessionStorage.allowed = 'yes'`)
	v.press("#remind")
	v.sees("#remind-say", "This browser reminds you one minute before the start")
	v.sees("#remind", "Remove the reminder")
	v.fitsEverybody("a reminder")
	h.startsAt(t, goods, time.Now().Add(63*time.Second))
	v.open("/")
	v.becomes("reminded", `sessionStorage.notes`)
	require.Regexp(t, "^A thing to wait for: The sale starts in [^;]+;$",
		ask[string](v, `sessionStorage.notes`))
	require.Empty(t,
		ask[[]string](v, `Object.keys(localStorage).filter((k) => k.startsWith('remind:'))`))
}

// TestItem_OffersNoReminderAfterTheStart opens the page of a coming sale, which then starts.
func TestItem_OffersNoReminderAfterTheStart(t *testing.T) {
	t.Parallel()
	h := standalone(t)
	goods := h.sells(t, sale{title: kettle, start: time.Hour, end: 2 * time.Hour})
	v := h.buyer(t, 154, "")
	v.open("/s/" + goods)
	v.sees(".about", "Remind me before the start")
	h.startsAt(t, goods, time.Now().Add(-time.Second))
	v.sees(".card", "On sale")
	v.becomes("no reminder is offered", `!['a[download]', '#remind', '#remind-say'].some((e) =>
		document.querySelector('.about ' + e).checkVisibility())`)
}

// startsAt moves the start of a sale.
func (h fixture) startsAt(t *testing.T, goods string, start time.Time) {
	t.Helper()
	var changed json.RawMessage
	require.NoError(t, h.client(t, seckill.Merchant, 1).Do(t.Context(), "PATCH",
		"/admin/sales/"+goods, map[string]time.Time{"startAt": start.UTC()}, &changed))
}
