package browser

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/config"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/accesscode"
	"flashsale.dev/seckill/internal/testing/must"
)

// TestShop_ServesEveryBuyer runs the tests of this file on a phone, and those of what a buyer sees
// on a desktop too. Each test has its own sale and buyer, so they run side by side on one
// standalone.
func TestShop_ServesEveryBuyer(t *testing.T) {
	t.Parallel()
	everywhere := map[string]func(*testing.T, fixture){
		"by keyboard alone": byKeyboard, "the card follows the order": theCardFollowsTheOrder,
		"a session that ended": aSessionThatEnded, "a page of its own": aPageOfItsOwn,
		"to the receipt": toTheReceipt, "for nothing": withoutPayment, "in Chinese": inChinese,
		"a clock that is wrong": aWrongClock, "unknown addresses": unknownAddresses,
		"without scripts": withoutScripts,
	}
	onPhones := map[string]func(*testing.T, fixture){
		"pressed many times": pressedManyTimes, "a response is lost": aResponseIsLost,
		"rate limited": isRateLimited, "a node is late": aNodeIsLate, "too many at once": tooMany,
		"no event stream": noEventStream, "the page is left": thePageIsLeft,
		"an expired attempt": anExpiredAttempt, "another tab is buying": anotherTabIsBuying,
		"signed out": signedOut, "in the line": inTheLine, "another user": anotherUserInAnotherTab,
		"cancelled on its page": cancelsOnItsPage,
		"with a code":           withACode, "a reminder": remindsOfTheStart,
	}
	maps.Copy(onPhones, everywhere)
	for screen, tests := range map[device]map[string]func(*testing.T, fixture){
		phone: onPhones, desktop: everywhere,
	} {
		h := standalone(t)
		h.screen = screen
		for name, test := range tests {
			t.Run(screen.name+" "+name, func(t *testing.T) {
				t.Parallel()
				test(t, h)
			})
		}
	}
}

// buyer is a visitor that has signed in. The page records every call, and runs the test's script
// before its own.
func (h fixture) buyer(t *testing.T, id int64, script string) *visitor {
	t.Helper()
	v := h.visits(t)
	v.signIn(h.token(t, seckill.Buyer, id, "Ada"))
	v.before(`
		window.calls = [];
		const real = window.fetch.bind(window);
		window.meddle = () => null;
		window.fetch = async (path, options) => {
			window.calls.push((options?.method ?? 'GET') + ' ' + path);
			return await window.meddle(path, options, real) ?? real(path, options);
		};` + script)
	return v
}

// calls returns the calls of the page that contain a text.
func (v *visitor) calls(part string) (some []string) {
	v.t.Helper()
	for _, c := range ask[[]string](v, "window.calls") {
		if strings.Contains(c, part) {
			some = append(some, c)
		}
	}
	return some
}

// sold checks the units sold, once every reservation has its order.
func (h fixture) sold(t *testing.T, goods string, units int64) {
	t.Helper()
	l := must.Get(h.client(t, seckill.Merchant, 1).Drained(t.Context(), goods))(t)
	require.Equal(t, units, l.Sold)
}

// refusal returns a response of the API to /randomPath, in the form that the page's script gets.
func refusal(retryAfter int) string {
	return fmt.Sprintf(`new Response(
		'{"code":429,"reason":"RATE_LIMITED","message":"","data":{},"requestId":"x"}',
		{status: 429, headers: {'Retry-After': '%d'}})`, retryAfter)
}

const won = "It’s yours. Please pay by"

func pressedManyTimes(t *testing.T, h fixture) {
	goods := h.sells(t, sale{title: "A thing pressed often", perBuyer: 5})
	v := h.buyer(t, 100, "")
	v.open("/s/" + goods)
	v.becomes("on sale", element(goods, "buy")+`.ariaDisabled === 'false'`)
	v.run(`for (let i = 0; i < 20; i++) ` + element(goods, "buy") + `.click()`)
	v.sees(card(goods)+" .say", won)
	require.Len(t, v.calls("/randomPath"), 1)
	require.Len(t, v.calls("/decrStock"), 1)
	h.sold(t, goods, 1)
}

// aResponseIsLost loses the first two responses to a purchase. The page repeats it with the same
// path and gets one order.
func aResponseIsLost(t *testing.T, h fixture) {
	goods := h.sells(t, sale{title: "A thing of lost answers", perBuyer: 5})
	v := h.buyer(t, 101, `let lost = 0; window.meddle = async (path, options, real) => {
		if (path.includes('decrStock') && lost++ < 2) {
			await real(path, options);
			throw new TypeError('lost');
		}
	};`)
	v.open("/s/" + goods)
	v.press(card(goods) + " .buy")
	v.sees(card(goods)+" .say", "No answer came. We ask again")
	v.sees(card(goods)+" .say", won)
	asked := v.calls("/decrStock")
	require.Len(t, asked, 3)
	require.Equal(t, []string{asked[0], asked[0], asked[0]}, asked, "one attempt uses one path")
	h.sold(t, goods, 1)
}

// isRateLimited checks that the page obeys Retry-After and shows the wait.
func isRateLimited(t *testing.T, h fixture) {
	goods := h.sells(t, sale{title: "A thing to wait for", perBuyer: 5})
	v := h.buyer(t, 102, `let refused = 0; window.at = []; window.meddle = (path) => {
		if (!path.includes('randomPath')) return null;
		window.at.push(performance.now());
		if (refused++ > 0) return null;
		return `+refusal(2)+`;
	};`)
	v.open("/s/" + goods)
	v.press(card(goods) + " .buy")
	v.sees(card(goods)+" .say", "We ask again for you in 2 s")
	v.sees(card(goods)+" .say", "We ask again for you in 1 s")
	spoken := element(goods, "say p") + `.ariaLive`
	require.Equal(t, "off", ask[string](v, spoken), "a countdown is read once, not each second")
	v.sees(card(goods)+" .say", won)
	require.Empty(t, ask[string](v, spoken+` ?? ''`))
	require.GreaterOrEqual(t, ask[float64](v, "window.at[1] - window.at[0]"), 1990.0)
}

// aNodeIsLate refuses the first request of a buyer who presses at the start: the node that answers
// believes that the sale begins a moment later. The page asks again, and gives up at the third
// time.
func aNodeIsLate(t *testing.T, h fixture) {
	goods := h.sells(t, sale{title: "A thing that has just begun", perBuyer: 5})
	v := h.buyer(t, 125, `window.late = 1; window.meddle = (path) =>
		path.includes('randomPath') && window.late-- > 0 ? new Response(
			'{"code":409,"reason":"NOT_STARTED","message":"","data":{},"requestId":"x"}',
			{status: 409}) : null;`)
	v.open("/s/" + goods)
	v.press(card(goods) + " .buy")
	v.sees(card(goods)+" .say", "The sale begins now. We ask again for you in 1 s.")
	v.sees(card(goods)+" .say", won)
	require.Len(t, v.calls("/randomPath"), 2)
	v.run(`window.late = 9; window.calls = []`)
	v.buys(goods, "This sale has not started.")
	require.Len(t, v.calls("/randomPath"), 3)
}

func tooMany(t *testing.T, h fixture) {
	goods := h.sells(t, sale{title: "A thing of one each"})
	v := h.buyer(t, 103, `window.meddle = (path) =>
		path.includes('randomPath') ? `+refusal(30)+` : null;`)
	v.open("/s/" + goods)
	v.press(card(goods) + " .buy")
	v.press(card(goods) + " .say button")
	v.sees(card(goods)+" .say", "Stopped. Nothing was taken.")
	v.run(`window.meddle = () => null`)
	v.buys(goods, won)
	v.sees(card(goods)+" .buy", "It’s yours")
	require.True(t, ask[bool](v, element(goods, "buy")+`.ariaDisabled === 'true'`), "one each")
}

func noEventStream(t *testing.T, h fixture) {
	goods := h.sells(t, sale{title: "A thing without a stream", perBuyer: 5})
	v := h.buyer(t, 104, `delete window.EventSource;`)
	v.open("/s/" + goods)
	v.buys(goods, won)
	require.NotEmpty(t, v.calls("GET /orders/"), "the order was asked for")
}

// thePageIsLeft leaves the page between the purchase and its response. The page uses the same path
// when it is opened again.
func thePageIsLeft(t *testing.T, h fixture) {
	goods := h.sells(t, sale{title: "A thing that is left", perBuyer: 5})
	v := h.buyer(t, 105, `window.meddle = (path) =>
		path.includes('decrStock') && !sessionStorage.left ? new Promise(() => {}) : null;`)
	v.open("/s/" + goods)
	v.press(card(goods) + " .buy")
	v.becomes("asked", `window.calls.some((c) => c.includes('decrStock'))`)
	first := v.calls("/decrStock")
	v.run(`sessionStorage.left = 'yes'`)
	v.open("/s/" + goods)
	v.sees(card(goods)+" .say", won)
	require.Equal(t, first, v.calls("/decrStock"))
	require.Empty(t, v.calls("/randomPath"))
}

// anotherTabIsBuying holds the lock of a purchase in another tab. A page that continues an attempt
// waits for a moment, and says so; it goes on if the lock is released meanwhile, as by a page that
// was just left.
func anotherTabIsBuying(t *testing.T, h fixture) {
	goods := h.sells(t, sale{title: "A thing of two tabs", perBuyer: 5})
	hold := fmt.Sprintf(`new Promise((held) => navigator.locks.request('buy-%s', () =>
		new Promise((release) => { window.release = release; held(); })))`, goods)
	v := h.buyer(t, 124, "")
	// This page continues no attempt at the other one.
	v.open("/s/" + h.sells(t, sale{title: "Another thing"}))
	v.run(hold)
	second := v.secondTab()
	second.open("/s/" + goods)
	second.buys(goods, "You are trying to buy this in another tab already.")
	second.run(fmt.Sprintf(`localStorage.setItem('try:124:%s',
		JSON.stringify({path: '%s', quantity: 1, begun: 1}))`, goods, strings.Repeat("0", 32)))
	second.open("/s/" + goods)
	second.sees(card(goods)+" .say", "You are trying to buy this in another tab already.")
	v.run("setTimeout(release, 500)")
	second.open("/s/" + goods)
	second.sees(card(goods)+" .say", "Your place has run out, and nothing was taken.")
}

// anExpiredAttempt checks that the page starts no new attempt by itself when an attempt's path has
// expired. Only the buyer starts one.
func anExpiredAttempt(t *testing.T, h fixture) {
	goods := h.sells(t, sale{title: "A thing of yesterday", perBuyer: 5})
	v := h.buyer(t, 110, fmt.Sprintf(
		`localStorage.setItem('try:110:%s', JSON.stringify({path: '%s', quantity: 1, begun: 1}));`,
		goods, strings.Repeat("0", 32)))
	v.open("/s/" + goods)
	v.sees(card(goods)+" .say", "Your place has run out, and nothing was taken.")
	require.Empty(t, v.calls("/randomPath"))
}

// aWrongClock checks that a device's clock that is two days wrong does not change the countdown.
func aWrongClock(t *testing.T, h fixture) {
	goods := h.sells(t, sale{title: "A thing of tomorrow", start: time.Hour, end: 2 * time.Hour})
	v := h.buyer(t, 106, `const real_ = Date; window.Date = class extends real_ {
		constructor(...a) { a.length ? super(...a) : super(real_.now() + 2 * 864e5); }
		static now() { return real_.now() + 2 * 864e5; } };`)
	v.open("/s/" + goods)
	v.becomes("right", `/Starts in (1:|01:00:00|59:[0-9][0-9])/.test(
		`+element(goods, "when")+`.innerText)`)
	v.sees(card(goods)+" .buy", "Not yet")
	require.Equal(t, "not-allowed",
		ask[string](v, `getComputedStyle(`+element(goods, "buy")+`).cursor`),
		"a button without effect has the cursor of one")
}

func byKeyboard(t *testing.T, h fixture) {
	goods := h.sells(t, sale{title: "A thing for the keyboard"})
	v := h.buyer(t, 107, "")
	v.open("/s/" + goods)
	v.becomes("on sale", element(goods, "buy")+`.ariaDisabled === 'false'`)
	v.tabs(card(goods) + " .buy")
	focus := `getComputedStyle(document.activeElement).outlineStyle === 'solid'`
	require.True(t, ask[bool](v, focus), "the focus can be seen")
	v.key("\r")
	v.sees(card(goods)+" .say", won)
	require.Equal(t, "status", ask[string](v, element(goods, "say")+`.getAttribute('role')`))
	v.tabs(order + " [data-part=pay]")
	v.key("\r")
	v.becomes("the focus stays in the order, whose buttons are gone",
		`document.activeElement.matches('`+order+`[data-status=paid] h3 a')`)
}

func inChinese(t *testing.T, h fixture) {
	goods := h.sells(t, sale{title: "搪瓷水壶 1.2 升", price: 19900})
	v := h.buyer(t, 108, "")
	v.open("/s/" + goods + "?lang=zh")
	require.Equal(t, "zh-Hans", ask[string](v, "document.documentElement.lang"))
	v.buys(goods, "抢到了！请在")
	v.open("/s/" + goods)
	v.sees("#orders", "待付款")
	v.run(`document.querySelector('.top nav a[hreflang=en]').click()`)
	v.sees("#orders", "Awaiting payment")
	v.open("/")
	require.True(t, v.is(`document.getElementById('orders').compareDocumentPosition(
		document.querySelector('.group')) & Node.DOCUMENT_POSITION_FOLLOWING`), "orders are before the sales")
}

func signedOut(t *testing.T, h fixture) {
	goods := h.sells(t, sale{title: "A thing for strangers"})
	v := h.visits(t)
	v.open("/s/" + goods)
	v.press(card(goods) + " .buy")
	v.becomes("asked who it is", `location.pathname === '/session'`)
	v.signsInWith("nonsense")
	v.sees("#say", "This token is not valid")
	v.open("/console")
	v.becomes("sent to sign in", `location.pathname + location.search === '/session?to=%2Fconsole'`)
	v.signsInWith(h.token(t, seckill.Buyer, 109, "Ada"))
	v.becomesSignedIn()
	v.open("/console")
	v.sees("h1", "Your account can’t open this page")
	v.open("/session")
	v.sees("h1", "You are Ada")
	v.press("#leave")
	v.becomes("signed out",
		`location.pathname === '/' && document.documentElement.dataset.user === ''`)
}

// aSessionThatEnded presses Buy after the session has ended. The card then leads to sign in and
// back.
func aSessionThatEnded(t *testing.T, h fixture) {
	goods := h.sells(t, sale{title: "A thing of another day"})
	v := h.buyer(t, 123, "")
	v.open("/s/" + goods)
	v.becomes("on sale", element(goods, "buy")+`.ariaDisabled === 'false'`)
	v.run(`fetch('/session', {method: 'DELETE'})`)
	v.buys(goods, "Your session has ended. Please sign in again.")
	v.press(card(goods) + " .say a")
	v.becomes("asked who it is", `location.pathname === '/session'`)
	v.signsInWith(h.token(t, seckill.Buyer, 123, "Ada"))
	v.becomes("back", `location.pathname === '/s/`+goods+`'`)
	v.buys(goods, won)
}

// anotherUserInAnotherTab signs out and another user in while a page is open. The page then shows
// that user: the browser's session is the other one's, and so would be the purchase.
func anotherUserInAnotherTab(t *testing.T, h fixture) {
	goods := h.sells(t, sale{title: "A thing of two users"})
	v := h.buyer(t, 126, "")
	v.open("/s/" + goods)
	v.becomes("on sale", element(goods, "buy")+`.ariaDisabled === 'false'`)
	second := v.secondTab()
	second.open("/session")
	second.press("#leave")
	v.sees(".who", "Sign in")
	second.open("/session")
	second.signsInWith(h.token(t, seckill.Buyer, 127, "Ben"))
	v.sees(".who", "Ben")
}

// TestSale_ShowsAPeriodThatChanges extends a sale while its page is open.
func TestSale_ShowsAPeriodThatChanges(t *testing.T) {
	t.Parallel()
	h := standalone(t)
	goods := h.sells(t, sale{title: "A thing that lasts longer"})
	v := h.visits(t)
	v.open("/s/" + goods)
	v.sees(card(goods)+" .when", "Ends in")
	before := v.text(".times")
	var changed struct{ EndAt string }
	require.NoError(t, h.client(t, seckill.Merchant, 1).Do(t.Context(), "PATCH", "/admin/sales/"+goods,
		map[string]any{"endAt": time.Now().UTC().Add(26 * time.Hour)}, &changed))
	v.becomes("longer", `document.querySelector('.times').innerText !== `+strconv.Quote(before)+`
		&& document.querySelectorAll('time.zoned')[1].dateTime === '`+changed.EndAt+`'`)
}

// TestCard_FollowsAnOrderThatExpires gives buyers 3 s to pay.
func TestCard_FollowsAnOrderThatExpires(t *testing.T) {
	t.Parallel()
	h := standalone(t, "SECKILL_PAYMENT_TIMEOUT=3s")
	for i, screen := range []device{phone, desktop} {
		t.Run(screen.name, func(t *testing.T) {
			t.Parallel()
			on := h
			on.screen = screen
			expires(t, on, int64(160+i))
		})
	}
}

func expires(t *testing.T, h fixture, buyer int64) {
	goods := h.sells(t, sale{title: "A thing that is not paid in time", stock: 1})
	v := h.buyer(t, buyer, `const every = window.setInterval; // the page asks for unpaid orders each 15 s
		window.setInterval = (step, ms) => every(step, ms === 15e3 ? 1e3 : ms);`)
	v.open("/s/" + goods)
	v.buys(goods, won)
	v.sees(card(goods)+" .say", "This order was not paid in time. You owe nothing.")
	require.NotContains(t, v.text(card(goods)+" .say"), won)
	v.becomes("on sale again", element(goods, "buy")+`.ariaDisabled === 'false'`)
	v.sees(order, "Not paid in time")
	h.sold(t, goods, 0)
}

// withoutPayment buys what costs nothing: the order is paid without a press of Pay.
func withoutPayment(t *testing.T, h fixture) {
	goods := h.sells(t, sale{title: "A thing for nothing", free: true})
	v := h.buyer(t, 122, "")
	v.open("/s/" + goods)
	v.press(card(goods) + " .buy")
	v.sees(card(goods)+" .say", "Paid. It’s yours.")
	v.sees(order+" [data-part=say]", "Confirmed. There is nothing to pay.")
	v.becomes("paid", `document.querySelector('`+order+`').dataset.status === 'paid'`)
}

// unknownAddresses opens what does not exist. Each address has a page that leads back, not JSON.
func unknownAddresses(t *testing.T, h fixture) {
	v := h.visits(t)
	for _, path := range []string{
		"/nothing", "/s/999999", "/s/lamp", "/s/1/nothing", "/console/nothing",
	} {
		v.open(path)
		v.sees("h1", "There is no such")
		require.Contains(t, ask[string](v, `document.title`), "There is no such", path)
		v.becomes("a way back", `document.querySelector('main a[href="/"]').checkVisibility()`)
	}
	v.fitsEverybody("an unknown address")
}

// withoutScripts opens pages in a browser that runs no scripts. Each says what it needs.
func withoutScripts(t *testing.T, h fixture) {
	goods := h.sells(t, sale{title: "A thing to read about"})
	v := h.visits(t)
	v.signIn(h.token(t, seckill.Merchant, 1, "Mei"))
	v.alter(func(ctx context.Context, tab *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, tab, emulation.SetScriptExecutionDisabled,
			emulation.SetScriptExecutionDisabledParams{Value: true})
		return chromedp.Void{}, err
	})
	for _, path := range []string{
		"/", "/s/" + goods, "/session", "/console", "/console/sales/" + goods, "/console/audit",
	} {
		v.open(path)
		v.sees(".noscript", "JavaScript")
		require.True(t, v.is(`document.querySelector('.noscript').checkVisibility()`), path)
	}
}

// inTheLine checks the line of a sale with one unit. The second buyer keeps the place over a reload
// and gets the unit that the first one cancels.
func inTheLine(t *testing.T, h fixture) {
	goods := h.sells(t, sale{
		title: "A thing to line up for", stock: 1, admission: string(seckill.ByWaitingRoom),
	})
	first := h.buyer(t, 112, "")
	first.open("/s/" + goods)
	first.sees(card(goods)+" .buy", "Join the line")
	first.press(card(goods) + " .buy")
	first.sees(card(goods)+" .say", "It is your turn. Buy within")
	first.becomes("the title calls", `document.title.includes('Your turn')`)
	first.press(card(goods) + " .buy")
	first.sees(card(goods)+" .say", won)

	second := h.buyer(t, 113, `
		window.streams = [];
		window.EventSource = class extends EventSource {
			constructor(path) { super(path); window.streams.push(path); }
		};`)
	second.open("/s/" + goods)
	second.sees(card(goods), "0 of 1 left")
	second.press(card(goods) + " .buy")
	second.sees(card(goods)+" .say", "You are next.")
	second.open("/s/" + goods)
	second.sees(card(goods)+" .say", "You are next.")
	require.Equal(t, "In the line", second.text(card(goods)+" .buy"))
	second.sees(card(goods)+" .line",
		"Your position is 2. Units left: 0. Units held unpaid: 1, until")
	second.sees(card(goods)+" .line", "You get a unit if unpaid ones return.")
	second.fitsEverybody("a card in the line")
	second.light("a card in the line")
	second.open("/s/" + goods + "?lang=zh")
	second.sees(card(goods)+" .line", "您的位置是第 2 位。还剩")
	second.open("/s/" + goods + "?lang=en")
	second.sees(card(goods)+" .say", "You are next.")
	second.hides(true)
	first.press(order + " [data-part=cancel]")
	first.press("#sure [value=cancel]")
	second.becomes("the title calls in a hidden tab", `document.title.includes('Your turn')`)
	require.True(t, second.is(`streams.some((path) => path.includes('/waiting-room/me/events'))`),
		"a hidden tab follows its place by a stream")
	second.hides(false)
	second.sees(card(goods)+" .say", "It is your turn. Buy within")
	second.press(card(goods) + " .buy")
	second.sees(card(goods)+" .say", won)
	h.sold(t, goods, 1)
}

// hides makes the page believe that its tab is hidden or shown.
func (v *visitor) hides(hidden bool) {
	v.run(fmt.Sprintf(`Object.defineProperty(document, 'hidden', {value: %v, configurable: true});
		document.dispatchEvent(new Event('visibilitychange'))`, hidden))
}

// withACode checks the card of a sale that asks for single codes: without a code, with a wrong one,
// with the one of a link, and with one that another buyer has used.
func withACode(t *testing.T, h fixture) {
	goods := h.sells(t, sale{
		title: "A thing for members", accessCode: string(seckill.SingleCodes),
	})
	secrets := must.Get(config.Auth{JWTSecret: config.Secret(h.secret)}.OrderKeys())(t)
	codes, _, err := accesscode.NewKeys(secrets...).Sign(
		must.Get(strconv.ParseInt(goods, 10, 64))(t), seckill.SingleCodes, time.Time{}, 1)
	require.NoError(t, err)
	field := card(goods) + " [data-part=code]"

	v := h.buyer(t, 114, "")
	v.open("/s/" + goods)
	v.buys(goods, "This sale asks for an access code.")
	v.becomes("the field has the focus", `document.activeElement.dataset.part === 'code'`)
	v.fill(field, "wrong")
	v.buys(goods, "This access code is not right for this sale")
	v.open("/s/" + goods + "?code=" + codes[0])
	v.becomes("the link has filled the code in",
		fmt.Sprintf("document.querySelector(%q).value === %q", field, codes[0]))
	v.fitsEverybody("a card with a code")
	v.buys(goods, won)
	v.open("/s/" + goods)
	v.becomes("the code is kept",
		fmt.Sprintf("document.querySelector(%q).value === %q", field, codes[0]))
	more := h.sells(t, sale{title: "Another thing", accessCode: string(seckill.SingleCodes)})
	v.open("/s/" + more + "?code=MORE")
	v.open("/?code=SHOP")
	for sale, code := range map[string]string{goods: codes[0], more: "MORE"} {
		v.becomes("each sale has its own code", fmt.Sprintf("document.querySelector(%q).value === %q",
			card(sale)+" [data-part=code]", code))
	}

	other := h.buyer(t, 115, "")
	other.open("/s/" + goods)
	other.fill(field, strings.ToLower(codes[0]))
	other.buys(goods, "Somebody else has used this access code.")
	h.sold(t, goods, 1)
}

// theCardFollowsTheOrder checks the card's message after cancellation, payment and the end of the
// time to pay. Before them the card asks for payment.
func theCardFollowsTheOrder(t *testing.T, h fixture) {
	goods := h.sells(t, sale{title: "A thing that is returned"})
	v := h.buyer(t, 111, `let late = false; window.expire = () => { late = true; };
		window.meddle = async (path, options, real) => {
			const mine = path.startsWith('/orders?');
			if (!late || !mine) return null;
			const answer = await (await real(path, options)).json();
			for (const o of answer.data.items) o.payBy = '2020-01-01T00:00:00.000Z';
			return new Response(JSON.stringify(answer));
		};`)
	v.open("/s/" + goods)
	v.buys(goods, won)
	v.press(order + " [data-part=cancel]")
	v.press("#sure [value=cancel]")
	v.sees(card(goods)+" .say", "You cancelled this order")
	require.NotContains(t, v.text(card(goods)+" .say"), won)
	v.becomes("on sale again", element(goods, "buy")+`.ariaDisabled === 'false'`)

	paid := h.sells(t, sale{title: "A thing that is paid"})
	v.open("/s/" + paid)
	v.buys(paid, won)
	v.press(order + " [data-part=pay]")
	v.sees(card(paid)+" .say", "Paid. It’s yours.")
	require.True(t, ask[bool](v, element(paid, "buy")+`.disabled`), "one each")

	overdue := h.sells(t, sale{title: "A thing that is not paid"})
	v.open("/s/" + overdue)
	v.run("expire()")
	v.press(card(overdue) + " .buy")
	v.sees(card(overdue)+" .say", "The time to pay is over.")
	v.becomes("Pay is gone",
		`!document.querySelector('`+order+` [data-part=pay]').checkVisibility()`)
	v.fitsEverybody("orders of every status")
}

// aPageOfItsOwn opens a sale's page signed out with a quantity. Signing in returns to it. The field
// then allows only what the limit leaves, and the focus stays on the button.
func aPageOfItsOwn(t *testing.T, h fixture) {
	goods := h.sells(t, sale{title: "A thing with an address", perBuyer: 12})
	v := h.visits(t)
	v.open("/?q=with+an+address")
	v.press(card(goods) + " h3 a")
	v.sees("h1", "A thing with an address")
	v.becomes("live", `document.querySelector('.card time').textContent`)
	v.fitsEverybody("a sale's page")
	v.light("a sale's page")
	v.fill("[data-part=quantity]", "11")
	v.press(".buy")
	v.becomes("asked who it is", `location.pathname === '/session'`)
	v.signsInWith(h.token(t, seckill.Buyer, 140, "Ada"))
	v.becomes("back with the quantity", `location.pathname === '/s/`+goods+`' &&
		document.querySelector('.card [data-part=quantity]')?.value === '11'`)
	v.sees(".card .buy", "Buy")
	v.run(`document.querySelector('.card .buy').focus()`)
	v.key("\r")
	v.sees(".card .say", won)
	v.becomes("the time to pay has its zone",
		element(goods, "say")+`.innerText.match(/(UTC|GMT|[A-Z]{3,4})/)`)
	v.becomes("one is left to this buyer",
		`document.querySelector('.card [data-part=quantity]').max === '1'`)
	require.True(t, ask[bool](v, `document.activeElement?.matches('.card .buy')`), "the focus")
	v.sees("#orders-list", "A thing with an address")
	v.fitsEverybody("a sale's page, bought")
	h.sold(t, goods, 11)

	other := h.visits(t)
	other.open("/session?to=" + url.QueryEscape(`/\evil.example/x`))
	other.signsInWith(h.token(t, seckill.Buyer, 141, "Bob"))
	other.becomes("at home", `location.href === '`+h.base+`/'`)
}
