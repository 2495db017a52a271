package browser

import (
	_ "embed"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill"
)

//go:embed checks.js
var checks string

// fitsEverybody holds the page that is open to checks.js.
func (v *visitor) fitsEverybody(what string) {
	v.t.Helper()
	v.run(`Promise.all(document.getAnimations().map((a) => a.effect.getComputedTiming().iterations === Infinity ? 0 : a.finished.catch(() => 0)))`)
	require.Empty(v.t, ask[[]string](v, checks), "%s, %s (%s, dark: %t)", what, v.device.name, v.device.language, v.device.dark)
}

// light holds a page's weight to what is promised, and reports its time.
func (v *visitor) light(what string) {
	v.t.Helper()
	type load struct {
		Bytes, Files int
		Millis       float64
	}
	l := ask[load](v, `(() => {
		const all = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource').filter((e) => e.initiatorType !== 'fetch')];
		const page = performance.getEntriesByType('navigation')[0];
		return {Bytes: all.reduce((sum, e) => sum + e.decodedBodySize, 0), Files: all.length, Millis: page.responseEnd - page.requestStart};
	})()`)
	require.Less(v.t, l.Bytes, 100_000, "%s weighs too much, uncompressed", what)
	v.t.Logf("%s: %d bytes uncompressed in %d files, the page itself after %.1f ms", what, l.Bytes, l.Files, l.Millis)
}

// Every page and every dialog, for a buyer, a merchant and an operator, on a phone and at a desktop, by day and by night, in
// both languages: names, labels, contrast, targets, headings, nothing wider than the screen, and all of it light.
func TestPagesAreForEverybody(t *testing.T) {
	h := standalone(t)
	for i, title := range []string{kettle, "Wireless headphones", "Film camera, refurbished"} {
		h.sale(t, title, 19900+int64(i)*70000, 40, int64(1+i), -time.Minute, time.Duration(i+1)*time.Hour)
	}
	goods := h.sale(t, "Running shoes", 39900, 5, 1, -time.Minute, time.Hour)
	h.sale(t, "Two tickets to the autumn concert", 66600, 80, 4, 26*time.Hour, 30*time.Hour)
	h.sale(t, "Reading lamp", 12900, 80, 1, 9*time.Minute, 30*time.Hour)
	for i, d := range []device{phone, desktop, phone.at(true).in("zh-CN"), desktop.at(true).in("zh-CN")} {
		t.Run(fmt.Sprintf("%s %s %t", d.name, d.language, d.dark), func(t *testing.T) {
			night := d.name + map[bool]string{true: "-night"}[d.dark]
			buyer := visit(t, h.base, d)
			buyer.open("/")
			buyer.becomes("live", `document.querySelector('`+card(goods)+` time').textContent`)
			buyer.fitsEverybody("the shop, signed out")
			buyer.light("the shop")
			buyer.open("/session")
			buyer.fitsEverybody("signing in")
			buyer.shot("session-" + night)
			buyer.signIn(h.token(t, seckill.Buyer, int64(10+i), "Ada"))
			buyer.press(card(goods) + " .buy")
			buyer.becomes("won", `document.querySelector('`+card(goods)+` .say').dataset.kind === 'yes' && document.querySelector('`+order+` .chip').textContent`)
			buyer.fitsEverybody("the shop, bought")
			buyer.run(`scrollTo({top: 0, behavior: 'instant'})`)
			buyer.shot("shop-" + night)
			buyer.press(order + " [data-part=cancel]")
			buyer.fitsEverybody("cancelling")
			buyer.press("#sure [value=keep]")
			buyer.open("/console")
			buyer.fitsEverybody("not for buyers")
			buyer.open("/session")
			buyer.fitsEverybody("signed in")

			operator := visit(t, h.base, d)
			operator.signIn(h.token(t, seckill.Operator, 4, "Ops"))
			operator.becomes("listed", `document.querySelector('#sales li')`)
			operator.fitsEverybody("the console")
			operator.shot("console-list-" + night)
			operator.light("the console")
			operator.press("[data-open=new]")
			operator.fitsEverybody("a new sale")
			operator.open("/console/sales/" + goods)
			operator.becomes("live", `document.body.dataset.live === 'on' && document.querySelector('#bought tr')`)
			operator.fitsEverybody("a sale")
			operator.light("a sale")
			operator.press("[data-open=topup]")
			operator.fitsEverybody("topping up")
			operator.open("/console/operations")
			operator.press("#choose button")
			operator.becomes("shown", `document.querySelector('.limiter [name=permitsPerSecond]').value`)
			operator.fitsEverybody("operations")
			operator.shot("operations-" + night)
		})
	}
}
