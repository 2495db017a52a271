package browser

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill"
)

// lineWords are what the page of a sale says to a buyer in the line, in one language.
type lineWords struct {
	device                                                               device
	returns, next, inLine, turn, stopped, lost, elsewhere, missed, yours string
}

var linesOf = []lineWords{
	{
		device: phone, returns: "Units may return", next: "You are next.", inLine: "In the line",
		turn: "It is your turn. Buy within", stopped: "Stopped. Nothing was taken.",
		lost:      "No answer came. We ask again in",
		elsewhere: "You have used or left this place in another tab.",
		missed:    "Your turn is over. You may join the line again", yours: won,
	},
	{
		device: desktop.at(true).in("zh-CN"), returns: "可能有退回", next: "下一个就是您", inLine: "排队中",
		turn:    "轮到您了。请在",
		stopped: "已停止，没有取走任何东西。", lost: "没有收到答复",
		elsewhere: "您已在另一个标签页里使用或放弃了这个位置", missed: "您的机会已过",
		yours: "抢到了！请在",
	},
}

// waiting is a buyer who waits for the only unit of a sale. An unpaid order of another buyer holds
// it.
type waiting struct {
	*visitor
	lineWords
	shop          fixture
	goods, holder string // holder is the order
	id            int64  // of the buyer
}

// TestLine_BuyersGetTheUnitThatReturns has a buyer wait by the keyboard alone, without a network,
// in two tabs and with a device that sleeps. It does so on a phone and a desktop, in both
// languages.
func TestLine_BuyersGetTheUnitThatReturns(t *testing.T) {
	t.Parallel()
	h := standalone(t)
	for i, words := range linesOf {
		for j, test := range []struct {
			name string
			run  func(*waiting)
		}{
			{"keyboard", (*waiting).byKeyboard},
			{"no network", (*waiting).withoutNetwork},
			{"two tabs", (*waiting).inTwoTabs},
			{"sleep", (*waiting).asleep},
		} {
			t.Run(words.device.name+" "+test.name, func(t *testing.T) {
				t.Parallel()
				w := h.waits(t, words, int64(300+100*i+10*j))
				test.run(w)
				h.sold(t, w.goods, 1)
			})
		}
	}
}

// TestLine_BuyerWhoSleepsThroughTheTurnMayJoinAgain has short turns, so that one is missed. A busy
// machine needs seconds to show the next one.
func TestLine_BuyerWhoSleepsThroughTheTurnMayJoinAgain(t *testing.T) {
	t.Parallel()
	h := standalone(t, "SECKILL_ADMISSION_TIMEOUT=15s")
	w := h.waits(t, linesOf[0], 500)
	w.sleepsUntil("missed", w.missed)
	w.press(card(w.goods) + " .buy")
	w.says(w.turn)
}

// sleepsUntil joins the line, stops all scripts until the place has a state, and then expects
// words.
func (w *waiting) sleepsUntil(state, words string) {
	w.joins()
	w.sleeps(true)
	w.unitReturns(state)
	w.sleeps(false)
	w.says(words)
}

// waits exposes a sale with one unit, which one buyer reserves, and opens its page as another.
func (h fixture) waits(t *testing.T, words lineWords, id int64) *waiting {
	goods := h.sells(t, sale{
		title: "A thing to wait for", stock: 1, admission: string(seckill.ByWaitingRoom),
	})
	w := &waiting{lineWords: words, shop: h, goods: goods, id: id}
	w.visitor = h.enters(t, words.device, seckill.Buyer, id, "Ada")
	h.place(t, id+1, goods, "admitted")
	w.holder = h.won(t, id+1, goods, 1)
	w.open("/s/" + goods)
	w.becomes("the line is open", element(goods, "buy")+`.ariaDisabled === 'false'`)
	w.becomes("the chip says why",
		element(goods, "chip")+fmt.Sprintf(`.textContent === %q`, w.returns))
	return w
}

// place joins the line for a buyer, and waits until the place has a state.
func (h fixture) place(t testing.TB, buyer int64, goods, state string) {
	t.Helper()
	api := h.client(t, seckill.Buyer, buyer)
	room := "/sales/" + goods + "/waiting-room"
	require.NoError(t, api.Do(t.Context(), "POST", room, nil, nil))
	h.placeBecomes(t, buyer, goods, state)
}

func (h fixture) placeBecomes(t testing.TB, buyer int64, goods, state string) {
	t.Helper()
	api := h.client(t, seckill.Buyer, buyer)
	var place struct{ State string }
	require.Eventually(t, func() bool {
		err := api.Do(t.Context(), "GET", "/sales/"+goods+"/waiting-room/me", nil, &place)
		return err == nil && place.State == state
	}, patience, 20*time.Millisecond, "the place is %s and never %s", place.State, state)
}

// says waits until the card says something.
func (w *waiting) says(words string) {
	w.t.Helper()
	w.sees(card(w.goods)+" .say", words)
}

func (w *waiting) joins() {
	w.t.Helper()
	w.press(card(w.goods) + " .buy")
	w.says(w.next)
}

// unitReturns cancels the order that holds the unit, and waits until the server has called this
// buyer.
func (w *waiting) unitReturns(state string) {
	w.t.Helper()
	holder := w.shop.client(w.t, seckill.Buyer, w.id+1)
	require.NoError(w.t, holder.Do(w.t.Context(), "POST", "/orders/"+w.holder+"/cancel", nil, nil))
	w.shop.placeBecomes(w.t, w.id, w.goods, state)
}

// byKeyboard joins, leaves, joins again and buys with keys alone.
func (w *waiting) byKeyboard() {
	buy, leave := card(w.goods)+" .buy", card(w.goods)+" .say button"
	w.tabs(buy)
	w.key("\r")
	w.says(w.next)
	w.tabs(leave)
	focus := `getComputedStyle(document.activeElement).outlineStyle === 'solid'`
	require.True(w.t, ask[bool](w.visitor, focus), "the focus can be seen")
	w.key("\r")
	w.says(w.stopped)
	w.tabs(buy)
	w.key("\r")
	w.sees(buy, w.inLine)
	require.Equal(w.t, "status",
		ask[string](w.visitor, element(w.goods, "say")+`.getAttribute('role')`))
	w.unitReturns("admitted")
	w.says(w.turn)
	w.becomes("the title calls", `document.title.startsWith('●')`)
	require.True(w.t, ask[bool](w.visitor, `document.activeElement.matches('.buy')`),
		"the focus stays on the button")
	w.key("\r")
	w.says(w.yours)
	require.False(w.t, ask[bool](w.visitor, `document.title.startsWith('●')`))
}

// withoutNetwork is called while the device has no network.
func (w *waiting) withoutNetwork() {
	w.joins()
	w.cutOff(true)
	w.says(w.lost)
	w.unitReturns("admitted")
	w.cutOff(false)
	w.says(w.turn)
	w.press(card(w.goods) + " .buy")
	w.says(w.yours)
}

// inTwoTabs sees the same place in both tabs, and buys in the second. The first one then says so.
func (w *waiting) inTwoTabs() {
	w.joins()
	second := *w
	second.visitor = w.secondTab()
	second.open("/s/" + w.goods)
	second.says(w.next)
	for _, tab := range []*visitor{w.visitor, second.visitor} {
		tab.becomes("the same number",
			element(w.goods, "line a")+`.href.endsWith('/draw?number=2')`)
	}
	w.unitReturns("admitted")
	w.says(w.turn)
	second.says(w.turn)
	second.press(card(w.goods) + " .buy")
	second.says(w.yours)
	w.says(w.elsewhere)
	w.becomes("the title calls no more", `!document.title.startsWith('●')`)
	w.fitsEverybody("a place that another tab has used")
}

// asleep is called while the device stops all scripts, and wakes in time.
func (w *waiting) asleep() {
	w.sleepsUntil("admitted", w.turn)
	w.press(card(w.goods) + " .buy")
	w.says(w.yours)
}

// TestLine_CountsTheBuyerWhoJoins has a buyer join whom the public state does not count yet.
func TestLine_CountsTheBuyerWhoJoins(t *testing.T) {
	t.Parallel()
	h := standalone(t)
	goods := h.sells(t, sale{
		title: "A thing with a line", admission: string(seckill.ByWaitingRoom),
		start: time.Hour, end: 2 * time.Hour,
	})
	v := h.buyer(t, 590, `window.meddle = async (path, options, real) => {
		if (!path.endsWith('/waiting-room') || options.method !== 'GET') return null;
		const answer = await (await real(path, options)).json();
		answer.data.joined = 0;
		return Response.json(answer);
	};`)
	v.open("/s/" + goods)
	v.press(card(goods) + " .buy")
	v.sees(card(goods)+" .line", "1 in the line.")
}

// TestLine_AsksWithinATurn has a buyer wait for a sale of the next day, with turns of 7 s. The page
// must ask each 2 s, because a turn may come early. The test counts the page's timers of a second.
func TestLine_AsksWithinATurn(t *testing.T) {
	t.Parallel()
	h := standalone(t)
	goods := h.sells(t, sale{
		title: "A thing of tomorrow", admission: string(seckill.ByWaitingRoom),
		start: 24 * time.Hour, end: 25 * time.Hour,
	})
	v := h.buyer(t, 595, `
		const timer = window.setTimeout;
		const pauses = window.pauses = [];
		let seconds = 0;
		window.setTimeout = (run, ms) => {
			if (ms !== 1000) return timer(run, ms);
			seconds++;
			return timer(run, 20);
		};
		window.meddle = async (path, options, real) => {
			if (path.includes('/waiting-room/me')) {
				pauses.push(seconds);
				seconds = 0;
			}
			if (!path.endsWith('/waiting-room') || options.method !== 'GET') return null;
			const answer = await (await real(path, options)).json();
			answer.data.admissionSeconds = 7;
			return Response.json(answer);
		};`)
	v.open("/s/" + goods)
	v.press(card(goods) + " .buy")
	v.becomes("some pauses", `window.pauses.length >= 4`)
	require.Equal(t, []int{2, 2, 2}, ask[[]int](v, `window.pauses.slice(1, 4)`))
}
