package browser

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill"
)

const ended = "Your session has ended. Please sign in again."

// signsInAgain signs a buyer in again by the link of a card, which leads back to the sale.
func (v *visitor) signsInAgain(h fixture, id int64, goods string) {
	v.t.Helper()
	v.press(card(goods) + " .say a")
	v.signsInWith(h.token(v.t, seckill.Buyer, id, "Ada"))
	v.becomes("back", `location.pathname === '/s/`+goods+`'`)
}

// TestPages_SessionEndsInTheMiddle ends sessions during a purchase and in the line.
func TestPages_SessionEndsInTheMiddle(t *testing.T) {
	t.Parallel()
	h := standalone(t)
	for name, test := range map[string]func(*testing.T, fixture){
		"after a lost answer": endsAfterALostAnswer, "while queued": endsWhileQueued,
		"in the line": endsInTheLine, "of a merchant": endsOfAMerchant,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, h)
		})
	}
}

// endsAfterALostAnswer loses the answer to a purchase and then the session. The attempt goes on
// after signing in again: another one would be a second purchase.
func endsAfterALostAnswer(t *testing.T, h fixture) {
	goods := h.sells(t, sale{title: "A thing of a lost session", perBuyer: 5})
	v := h.buyer(t, 180, `window.meddle = async (path, options, real) => {
		if (path.includes('decrStock') && !sessionStorage.lost) {
			sessionStorage.lost = 'yes';
			await real(path, options);
			await real('/session', {method: 'DELETE'});
			throw new TypeError('lost');
		}
	};`)
	v.open("/s/" + goods)
	v.buys(goods, ended)
	v.signsInAgain(h, 180, goods)
	v.sees(card(goods)+" .say", won)
	require.Empty(t, v.calls("/randomPath"))
	h.sold(t, goods, 1)
}

// endsWhileQueued ends the session while the page waits for the order to be written.
func endsWhileQueued(t *testing.T, h fixture) {
	goods := h.sells(t, sale{title: "A thing of a long wait", perBuyer: 5})
	v := h.buyer(t, 181, `if (!sessionStorage.over) delete window.EventSource;
		window.meddle = async (path, options, real) => {
			if (!path.startsWith('/orders/') || sessionStorage.over) return;
			sessionStorage.over = 'yes';
			await real('/session', {method: 'DELETE'});
		};`)
	v.open("/s/" + goods)
	v.buys(goods, ended)
	v.signsInAgain(h, 181, goods)
	v.sees(card(goods)+" .say", won)
	h.sold(t, goods, 1)
}

// endsInTheLine ends the session of a buyer in the line. Signing in leads back to the place.
func endsInTheLine(t *testing.T, h fixture) {
	goods := h.sells(t, sale{
		title: "A thing of a long line", start: time.Hour, end: 2 * time.Hour,
		admission: string(seckill.ByWaitingRoom),
	})
	v := h.buyer(t, 182, "")
	v.open("/s/" + goods)
	v.press(card(goods) + " .buy")
	v.sees(card(goods)+" .buy", "In the line")
	v.run(`fetch('/session', {method: 'DELETE'})`)
	v.sees(card(goods)+" .say", ended)
	v.signsInAgain(h, 182, goods)
	v.sees(card(goods)+" .buy", "In the line")
}

// endsOfAMerchant opens pages of the console, and ends the session. The page of a sale calls
// nothing but its stream of figures.
func endsOfAMerchant(t *testing.T, h fixture) {
	goods := h.sells(t, sale{title: "A thing of an absent merchant", merchant: 7})
	v := h.enters(t, desktop, seckill.Merchant, 7, "Mei")
	v.before(`window.EventSource = class extends EventSource {
		constructor(path) { super(path); window.stream = this; } };`)
	v.open("/console/sales/" + goods)
	v.becomes("live, and the orders do not change", `document.body.dataset.live === 'on' &&
		performance.getEntriesByType('resource').filter((e) => e.name.includes('/orders?')).length > 1`)
	v.run(`fetch('/session', {method: 'DELETE'}).then(() => { // as the server ends a stream
		window.stream.close(); window.stream.dispatchEvent(new Event('error')); })`)
	v.sees("#signed-out", "Your session has ended.")
	v.signIn(h.token(t, seckill.Merchant, 7, "Mei"))
	v.open("/console/keys")
	v.press("[data-open=new]")
	v.fill("#k-name", "a shop")
	v.run(`document.querySelector('[name=scope]').checked = true; fetch('/session', {method: 'DELETE'})`)
	v.press("#new button[value=yes]")
	v.becomes("warned", `document.getElementById('signed-out') !== null`)
}

// TestConsole_SameFormAgainIsOneRequest loses the answers to a form until the page gives up. The
// merchant's next press of the button repeats the request, and a corrected form is another one.
func TestConsole_SameFormAgainIsOneRequest(t *testing.T) {
	t.Parallel()
	h := standalone(t)
	goods := h.sells(t, sale{title: "A thing that is topped up"})
	v := h.enters(t, desktop, seckill.Merchant, 1, "Mei")
	v.before(`const real = window.fetch.bind(window); window.lose = true;
		window.fetch = async (path, options) => {
			const answer = await real(path, options);
			if (options?.method !== 'PATCH' || !window.lose) return answer;
			return new Response('{"reason":"UNAVAILABLE","data":{}}', {status: 503, headers: {'Retry-After': '31'}});
		};`)
	v.open("/console/sales/" + goods)
	v.press("[data-open=topup]")
	v.press("#topup button[value=yes]")
	v.becomes("given up", `document.querySelector('#topup [data-part=say]').textContent !== ''`)
	v.becomes("the focus stays", `document.activeElement.matches('#topup [value=yes]')`)
	v.run(`window.lose = false`)
	v.press("#topup button[value=yes]")
	v.sees("#say", "Done: the number of units has changed.")
	total := func() (s struct{ Total int64 }) {
		require.NoError(t,
			h.client(t, seckill.Merchant, 1).Do(t.Context(), "GET", "/admin/sales/"+goods, nil, &s))
		return s
	}
	require.EqualValues(t, 150, total().Total)
	v.press("[data-open=topup]")
	v.press("#topup button[value=yes]")
	v.becomes("changed", `!document.getElementById('topup').open`)
	require.EqualValues(t, 250, total().Total)
	v.press("[data-open=topup]")
	v.fill("#t-n", "-50")
	v.press("#topup button[value=yes]")
	v.becomes("changed", `!document.getElementById('topup').open`)
	v.sees("#say", "Done: the number of units has changed.") // no unit is new
	require.EqualValues(t, 200, total().Total)
}
