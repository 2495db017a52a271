package browser

import (
	"bytes"
	_ "embed"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/loadgen"
	"flashsale.dev/seckill/internal/loadgen/buyer"
	"flashsale.dev/seckill/internal/loadgen/report"
	"flashsale.dev/seckill/internal/loadgen/verdict"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/must"
)

//go:embed checks.js
var checks string

// axeCore is the script of axe-core, which scripts/axe installs.
var axeCore = sync.OnceValues(func() (string, error) {
	path, err := exec.Command("../../scripts/axe").Output()
	if err != nil {
		return "", fmt.Errorf("scripts/axe: %w", err)
	}
	script, err := os.ReadFile(strings.TrimSpace(string(path)))
	return string(script), err
})

//go:embed contrast.js
var contrasts string

// axe is the script that returns, a line each, what violates axe-core's rules of WCAG 2.2, levels A
// and AA, and its best practices. It also returns what axe-core leaves open. It leaves out
// contrasts, which contrast.js computes, and the headers of tables without rows.
const axe = `axe.run(document, {
		runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
		rules: {'target-size': {enabled: true}}, resultTypes: ['violations', 'incomplete'],
	}).then(({violations, incomplete}) =>
		[...violations, ...incomplete.filter((rule) =>
			!['color-contrast', 'th-has-data-cells'].includes(rule.id))].flatMap((v) =>
			v.nodes.map((n) =>
				v.id + ': ' + v.help + ': ' + n.target.join(' ') + ': ' + n.failureSummary)))`

// widths are the screens that no page may overflow.
var widths = []device{narrow, {width: 390, height: 844, scale: 2, phone: true}, desktop}

// fitting are the pages that have passed, so that standalone and real servers, whose pages are the
// same, do not check them twice.
var fitting sync.Map

// fitsEverybody checks the open page: axe-core in the visitor's own scheme of colours, contrast in
// both schemes, and the layout on three screens. It checks each page and device once: what names
// one state of one page.
func (v *visitor) fitsEverybody(what string) {
	v.t.Helper()
	passed := fmt.Sprintf("%s %+v", what, v.device)
	if _, found := fitting.Load(passed); found {
		return
	}
	if !v.is(`window.axe`) {
		v.run(must.Get(axeCore())(v.t) + "; undefined")
	}
	own := v.device
	own.still = true
	other := own.at(!own.dark)
	v.do(own.hold)
	v.run(`scrollTo(0, 0)`) // the head of the page hides what is under it
	wrong := append(ask[[]string](v, axe), ask[[]string](v, contrasts)...)
	v.do(other.hold)
	wrong = append(wrong, ask[[]string](v, contrasts)...)
	require.Empty(v.t, wrong, "%s, %+v", what, v.device)
	v.fits(what)
	fitting.Store(passed, true)
}

// fits checks the open page on three screens, in the other scheme of colours.
func (v *visitor) fits(what string) {
	v.t.Helper()
	other := v.device.at(!v.device.dark)
	other.still = true
	var wrong []string
	for _, screen := range widths {
		other.width, other.height, other.scale = screen.width, screen.height, screen.scale
		v.do(other.hold)
		wrong = append(wrong, ask[[]string](v, checks)...)
		if *pages != "" {
			name := fmt.Sprintf("%s-%s-%d-%t.png", what, other.language, other.width, other.dark)
			v.keep(filepath.Join(*pages, strings.ReplaceAll(name, " ", "-")))
		}
	}
	v.do(v.device.hold)
	require.Empty(v.t, wrong, "%s, %+v", what, v.device)
}

// light checks and returns a page's size, and logs its load time.
func (v *visitor) light(what string) (bytes int) {
	v.t.Helper()
	type load struct {
		Bytes, Files int
		Millis       float64
	}
	l := ask[load](v, `(() => {
		const page = performance.getEntriesByType('navigation')[0];
		const all = [page, ...performance.getEntriesByType('resource').filter(
			(e) => e.initiatorType !== 'fetch')];
		const bytes = all.reduce((sum, e) => sum + e.decodedBodySize, 0);
		return {Bytes: bytes, Files: all.length, Millis: page.responseEnd - page.requestStart};
	})()`)
	require.Less(v.t, l.Bytes, 100_000, "%s is too large, uncompressed", what)
	v.t.Logf("%s: %d bytes uncompressed in %d files, the page itself after %.1f ms",
		what, l.Bytes, l.Files, l.Millis)
	return l.Bytes
}

// TestPages_AreAccessibleAndLight opens pages and their dialog boxes as a buyer and as an operator:
// on a phone by day in English, and on a desktop by night in Chinese. It checks names, labels,
// contrast, targets, headings, layout and weight. Tests of other pages check these by fitsEverybody
// too.
func TestPages_AreAccessibleAndLight(t *testing.T) {
	t.Parallel()
	h := standalone(t)
	for i, title := range []string{kettle, "Wireless headphones", "Film camera, refurbished"} {
		i := int64(i)
		h.sells(t, sale{
			title: title, price: 19900 + i*70000, stock: 40, perBuyer: 1 + i,
			end: time.Duration(i+1) * time.Hour,
		})
	}
	goods := h.sells(t, sale{title: "Running shoes", price: 39900, stock: 5})
	for _, s := range []sale{
		{
			title: "Two tickets to the autumn concert", price: 66600, perBuyer: 4,
			start: 26 * time.Hour,
		},
		{title: "Reading lamp", price: 12900, start: 9 * time.Minute},
	} {
		s.stock, s.end = 80, 30*time.Hour
		h.sells(t, s)
	}
	devices := []device{phone, desktop.at(true).in("zh-CN")}
	for i, d := range devices {
		t.Run(fmt.Sprintf("%s %s %t", d.name, d.language, d.dark), func(t *testing.T) {
			t.Parallel()
			ada := visit(t, h.base, d)
			ada.open("/")
			ada.becomes("live", `document.querySelector('`+card(goods)+` time').textContent`)
			ada.fitsEverybody("the shop, signed out")
			ada.light("the shop")
			ada.open("/session")
			ada.fitsEverybody("signing in")
			ada.signIn(h.token(t, seckill.Buyer, int64(10+i), "Ada"))
			ada.open("/")
			ada.press(card(goods) + " .buy")
			ada.becomes("won", element(goods, "say")+`.dataset.kind === 'yes' &&
				document.querySelector('`+order+` .chip').textContent`)
			ada.fitsEverybody("the shop, bought")
			ada.press(order + " [data-part=cancel]")
			ada.fitsEverybody("cancelling")
			ada.press("#sure [value=keep]")
			ada.open("/console")
			ada.fitsEverybody("not for buyers")
			ada.open("/session")
			ada.fitsEverybody("signed in")

			operator := h.enters(t, d, seckill.Operator, 4, "Ops")
			operator.open("/console")
			operator.becomes("listed", `document.querySelector('#sales li')`)
			operator.fitsEverybody("the console")
			operator.light("the console")
			operator.press("[data-open=new]")
			operator.fitsEverybody("a new sale")
			operator.open("/console/sales/" + goods)
			operator.becomes("live",
				`document.body.dataset.live === 'on' && document.querySelector('#bought tr')`)
			operator.fitsEverybody("a sale")
			operator.light("a sale")
			operator.press("[data-open=topup]")
			operator.fitsEverybody("topping up")
			operator.open("/console/operations")
			operator.press("#choose button")
			operator.becomes("shown",
				`document.querySelector('.limiter [name=permitsPerSecond]').value`)
			operator.fitsEverybody("operations")
		})
	}
}

// TestReport_FitsAPhone opens the report of a load test, with a long number of an order, as a file
// of another server.
func TestReport_FitsAPhone(t *testing.T) {
	t.Parallel()
	var page bytes.Buffer
	made := report.New(report.Settings{Plan: loadgen.Plan{GoodsID: "7", Bases: []string{"http://127.0.0.1"}}},
		loadgen.Result{
			Started: time.Now(), Took: time.Second, Planned: 2, Arrived: 2,
			Outcomes: map[loadgen.Kind]map[buyer.Outcome]int{loadgen.Polite: {buyer.Won: 2}},
			Steps: []loadgen.Step{{
				Step: buyer.StepPath, Count: 2, Answers: map[string]int64{"OK": 1, "SOLD_OUT": 1},
			}},
		},
		verdict.Verdict{Differences: []string{"lost: 1EHPB7qRzSW21NiMXIuidLmrO7yYrHNO5CU" +
			"1EHPB7qRzSW21NiMXIuidLmrO7yYrHNO5CU"}}, false)
	require.NoError(t, made.HTML(&page))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(page.Bytes())
	}))
	t.Cleanup(server.Close)
	v := visit(t, server.URL, narrow)
	v.open("/")
	v.sees("body", "FAIL: ")
	v.fitsEverybody("a load report")
}

// TestPages_LongWordsFit has texts without a space, as long as the API takes them.
func TestPages_LongWordsFit(t *testing.T) {
	t.Parallel()
	h := standalone(t)
	long := strings.Repeat("W", 120)
	goods := h.sells(t, sale{title: long, price: 1e12, stock: 1e8, perBuyer: 1000})
	sn := h.won(t, 170, goods, 1000)
	h.exec(t, `UPDATE orders SET name = ? WHERE order_sn = ?`, long, sn)
	limiter := "/admin/limiters/randomPathPerUser/" + long[:64]
	require.NoError(t, h.client(t, seckill.Operator, 4).Do(t.Context(), "PUT", limiter,
		map[string]int{"permitsPerSecond": 7}, nil))
	buyer := h.enters(t, phone, seckill.Buyer, 170, long)
	for page, part := range map[string]string{
		"/": "#orders-list", "/s/" + goods: "h1", "/o/" + sn: "#receipt", "/session": "h1",
	} {
		buyer.open(page)
		buyer.sees(part, "WWW")
		buyer.fits(page)
	}
	mei := h.enters(t, phone, seckill.Merchant, 1, long)
	mei.open("/console")
	mei.sees("#sales", "WWW")
	mei.fits("/console")
	mei.open("/console/sales/" + goods)
	mei.sees("h1", "WWW")
	mei.fits("a sale in the console")
	mei.press("#bought a")
	mei.press("[data-open=reveal]")
	mei.press("#reveal button[value=yes]")
	mei.sees("#details", "WWW")
	mei.fits("an order in the console")
	ops := h.enters(t, phone, seckill.Operator, 4, "Ops")
	ops.open("/console/operations")
	ops.sees("#overrides", "WWW")
	ops.fits("/console/operations")
}

// TestPages_WriteRightToLeftTextInItsOrder shows a title, an address and a buyer's name in Arabic.
func TestPages_WriteRightToLeftTextInItsOrder(t *testing.T) {
	t.Parallel()
	h := standalone(t)
	goods := h.sells(t, sale{title: "غلاية كهربائية!"})
	buyer := h.enters(t, desktop, seckill.Buyer, 160, "أحمد")
	buyer.open("/")
	buyer.buys(goods, won)
	buyer.endsLeft("#orders-list h3 a")
	buyer.endsLeft(card(goods) + " h3 a")
	buyer.becomes("the title is above the price", fmt.Sprintf(`((title, price) =>
		Math.abs(title.firstChild.getBoundingClientRect().left - price.getBoundingClientRect().left) < 2
	)(...document.querySelectorAll('%[1]s h3, %[1]s .price'))`, card(goods)))
	buyer.press("#orders-list h3 a")
	buyer.sees("#steps [aria-current]", "Address")
	buyer.savesAddress("أحمد!")
	buyer.endsLeft("#address address p")
	buyer.endsLeft("#receipt-head a")
	mei := h.enters(t, desktop, seckill.Merchant, 1, "Mei")
	mei.open("/console")
	mei.endsLeft("#sales h2")
	mei.open("/console/sales/" + goods)
	mei.endsLeft("h1")
	mei.sees("#bought td:nth-child(3)", "(160)")
	require.False(t, mei.is(leftEnd("#bought td:nth-child(3)")), "the number follows the name")
	mei.press("#bought a")
	mei.endsLeft("#order .facts a")
}

// endsLeft waits until the last character of an element's text is left of the first.
func (v *visitor) endsLeft(selector string) {
	v.t.Helper()
	v.becomes(selector+" ends at the left", leftEnd(selector))
}

// leftEnd is the script that reports whether an element's text ends left of where it begins.
func leftEnd(selector string) string {
	return fmt.Sprintf(`((text) => {
		const at = (i) => { const r = document.createRange(); r.setStart(text, i);
			r.setEnd(text, i + 1); return r.getBoundingClientRect().left; };
		return text?.length > 2 && at(text.length - 1) < at(text.data.search(/\p{L}/u));
	})(document.querySelector(%q)?.firstChild)`, selector)
}
