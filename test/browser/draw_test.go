package browser

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/waitingroom"
)

// drawPage is a visitor of the page that recomputes a draw.
type drawPage struct{ *visitor }

// computes requires the position that the page shows for a number.
func (v drawPage) computes(draw *waitingroom.Draw, number int64) {
	v.t.Helper()
	v.run(`document.getElementById('say').textContent = ''`)
	v.fill("#d-number", strconv.FormatInt(number, 10))
	v.press("#check button:not([type=button])")
	counted := message.NewPrinter(language.English)
	said := counted.Sprintf("Number %d has position %d of %d.", number,
		draw.Position(number), draw.Size())
	if number > int64(draw.Size()) {
		said = counted.Sprintf("Number %d joined after the draw, whose size is %d, so its position is %d.",
			number, draw.Size(), number)
	}
	v.sees("#say", said)
	v.sees("#say", "The seed belongs to the commitment.")
}

// TestDraw_PageRecomputesPositions compares the page with Go: for the draw of a sale, and for other
// values that a visitor enters. The visitor opens the page before the start, when only the
// commitment is public. The merchant starts the sale once all buyers have joined.
func TestDraw_PageRecomputesPositions(t *testing.T) {
	t.Parallel()
	recomputesADraw(t, standalone(t)).computesOthers()
}

func recomputesADraw(t *testing.T, h fixture) drawPage {
	goods := h.sells(t, sale{
		title: "A thing to draw for", stock: 1, admission: string(seckill.ByWaitingRoom),
		start: 30 * time.Minute, end: time.Hour,
	})
	v := drawPage{visit(t, h.base, phone)}
	v.open("/s/" + goods)
	v.press(".about a[href$='/draw']")
	v.sees("#status", "The seed is secret until the start.")
	v.becomes("the commitment is there",
		`/^[0-9a-f]{64}$/.test(document.getElementById('d-commitment').value)`)
	require.Empty(t, ask[string](v.visitor, `document.getElementById('d-seed').value`))
	room := "/sales/" + goods + "/waiting-room"
	for buyer := range int64(25) {
		require.NoError(t, h.client(t, seckill.Buyer, 600+buyer).Do(t.Context(), "POST", room, nil,
			nil))
	}
	v.fitsEverybody("a draw before the start")
	starts := map[string]time.Time{"startAt": time.Now().UTC().Truncate(time.Millisecond)}
	require.NoError(t, h.client(t, seckill.Merchant, 1).Do(t.Context(), "PATCH", "/admin/sales/"+goods,
		starts, nil))

	v.becomes("the page has the seed", `document.getElementById('d-seed').value !== ''`)
	var public waitingroom.Published
	require.NoError(t, h.client(t, seckill.Buyer, 600).Do(t.Context(), "GET", room, nil, &public))
	draw := must.Get(public.Draw())(t)
	require.Positive(t, draw.Size())
	for number := int64(1); number <= 3; number++ {
		v.computes(draw, number)
		var place struct{ Position int64 }
		require.NoError(t, h.client(t, seckill.Buyer, 600+number-1).Do(t.Context(), "GET", room+"/me",
			nil, &place))
		require.Equal(t, draw.Position(number), place.Position)
	}
	v.computes(draw, int64(draw.Size()))
	v.computes(draw, int64(draw.Size())+1)
	v.fitsEverybody("a position that was computed")
	v.light("the page of a draw")
	v.refusesWrongValues(public)
	return v
}

// refusesWrongValues changes one digit of the seed, and then enters what no value can be.
func (v drawPage) refusesWrongValues(public waitingroom.Published) {
	v.t.Helper()
	other := map[bool]string{true: "1", false: "0"}[strings.HasPrefix(public.Seed, "0")] +
		public.Seed[1:]
	v.fill("#d-seed", other)
	v.press("#check button:not([type=button])")
	v.sees("#say", "This seed does not belong to this commitment.")
	v.sees("#say", must.Get(waitingroom.ParseSeed(other))(v.t).Commitment())
	require.NotContains(v.t, v.text("#say"), "position")
	v.fill("#d-seed", other[1:])
	v.fill("#d-number", "0")
	v.fill("#d-size", "4294967296")
	v.press("#check button:not([type=button])")
	v.sees("#w-seed", "64 digits")
	v.sees("#w-number", "A whole number from 1 to")
	v.sees("#w-size", "A whole number from 0 to 4,294,967,295.")
	v.becomes("the first has the focus", `document.activeElement.id === 'd-number'`)
	v.fitsEverybody("wrong values of a draw")
}

// computesOthers enters draws of other sizes, up to the largest.
func (v drawPage) computesOthers() {
	v.t.Helper()
	for i, size := range []uint32{1, 2, 256, 257, 20_000, 1_000_000, 4294967295} {
		var seed waitingroom.Seed
		seed[0], seed[31] = byte(i), 255
		digest := fmt.Sprintf("%040x", i)
		v.fill("#d-seed", seed.Hex())
		v.fill("#d-commitment", strings.ToUpper(seed.Commitment())) // as somebody may have noted it
		v.fill("#d-digest", digest)
		v.fill("#d-size", fmt.Sprint(size))
		draw := waitingroom.NewDraw(seed, []byte(digest), size)
		for _, number := range []int64{1, (int64(size) + 1) / 2, int64(size), int64(size) + 1} {
			v.computes(draw, number)
		}
	}
}

// TestDraw_CardLinksToThePage follows the link of a card in the line, in Chinese, which brings the
// number. A page without WebCrypto says what it needs, and a sale without a line has no such page.
func TestDraw_CardLinksToThePage(t *testing.T) {
	t.Parallel()
	h := standalone(t)
	goods := h.sells(t,
		sale{title: "A thing with a line", stock: 1, admission: string(seckill.ByWaitingRoom)})
	h.place(t, 650, goods, "admitted")
	v := h.enters(t, desktop.at(true).in("zh-CN"), seckill.Buyer, 651, "Ada")
	v.open("/s/" + goods)
	v.press(card(goods) + " .buy")
	v.press(card(goods) + " .line a")
	v.sees("#say", "号码 2 在 0 个号码抽签之后加入，位置是第 2 位。")
	v.fitsEverybody("a draw in Chinese")

	old := visit(t, h.base, narrow)
	old.before(`Object.defineProperty(crypto, 'subtle', {value: undefined});`)
	old.open("/s/" + goods + "/draw")
	old.sees("#status", "Your browser computes this only on pages with https.")
	require.False(t, old.is(`document.getElementById('check').checkVisibility()`))
	old.fitsEverybody("a draw without WebCrypto")
	plain := h.sells(t, sale{title: "A thing without a line"})
	old.open("/s/" + plain + "/draw")
	old.sees("h1", "There is no such page")
}
