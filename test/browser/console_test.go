package browser

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill"
)

// TestConsole_PublishesEditsAndCopies keeps a merchant from publishing a sale with wrong fields,
// and then edits, pauses, copies and deletes sales.
func TestConsole_PublishesEditsAndCopies(t *testing.T) {
	t.Parallel()
	h := standalone(t)
	for _, d := range []device{desktop, phone.at(true)} {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			mei := visit(t, h.base, d)
			mei.before(`const Real = window.EventSource;
				window.EventSource = class extends Real {
					constructor(url) { super(url); window.stream = this; } };`)
			mei.signIn(h.token(t, seckill.Merchant, 1, "Mei"))
			mei.open("/console")
			mei.sees("main", "The shop is called “Flash Sale”.")
			mei.refusesWrongFields()
			goods := mei.publishes()
			api := h.client(t, seckill.Merchant, 1)
			read := func() (s struct {
				Title, StartAt      string
				Price, Total        int64
				PerBuyerLimit       int64
				Status, Description string
				ImageURL            string `json:"imageUrl"`
			},
			) {
				require.NoError(t, api.Do(t.Context(), "GET", "/admin/sales/"+goods, nil, &s))
				return s
			}
			before := read()
			require.EqualValues(t, 550, before.Price)

			mei.press("[data-open=edit]")
			require.True(t, mei.is(`document.getElementById('n-title').disabled`),
				"only a draft has another title")
			mei.fitsEverybody("editing")
			mei.fill("#n-stock", "9")
			mei.fill("#n-limit", "2")
			mei.fill("#n-image", "https://example.org/kettle.jpg")
			mei.fill("#n-description", "It holds 1.2 litres.")
			mei.press("#edit button[value=yes]")
			mei.sees("#say", "Saved.")
			after := read()
			require.EqualValues(t, []any{
				int64(9), int64(2), "https://example.org/kettle.jpg",
				"It holds 1.2 litres.", before.StartAt,
			},
				[]any{
					after.Total, after.PerBuyerLimit, after.ImageURL,
					after.Description, after.StartAt,
				})

			mei.press("[data-open=pause]")
			mei.press("#pause button[value=yes]")
			mei.sees("#say", "Paused")
			mei.becomes("the focus is on the page", `document.activeElement.id === 'main'`)
			require.Greater(t, read().StartAt, before.StartAt)
			mei.press("[data-do=resume]")
			mei.sees("#say", "On sale now")
			require.Equal(t, before.StartAt, read().StartAt, "a pause keeps the start")

			mei.run(`window.stream.dispatchEvent(new Event('error'));
				window.stale = document.getElementById('ledger').innerText`)
			require.Contains(t, ask[string](mei, `window.stale`),
				"Stock ledger: no connection, figures of",
				"figures without a connection are not in balance")
			mei.sees("#ledger", "Stock ledger: in balance")
			mei.losesTheNetwork()

			mei.run(`document.querySelector('a[href^="/console?copy="]').click()`)
			mei.becomes("a copy",
				`document.querySelector('#new[open] #n-title')?.value === 'A red kettle'`)
			require.Equal(t, "5.50", ask[string](mei, `document.getElementById('n-price').value`))
			mei.press("#new button[value=draft]")
			mei.becomes("its page", `location.pathname.startsWith('/console/sales/')`)
			mei.press("[data-open=delete]")
			mei.press("#delete button[value=yes]")
			mei.becomes("deleted", `location.pathname === '/console'`)
			mei.open("/console/operations")
			mei.sees("h1", "Your account can’t open this page")
		})
	}
}

// losesTheNetwork pauses the sale in vain. The page takes back what it said once the network is
// back.
func (v *visitor) losesTheNetwork() {
	v.t.Helper()
	v.cutOff(true)
	v.run(`window.stream.close(); window.stream.dispatchEvent(new Event('error'))`)
	v.sees("#ledger", "Stock ledger: no connection, figures of")
	v.fill("#filter", "paid")
	v.sees("#say",
		"No connection to the server. The figures here are old; the page goes on trying.")
	v.cutOff(false)
	v.sees("#ledger", "Stock ledger: in balance")
	v.becomes("the banner is gone", `document.getElementById('say').innerText === ''`)
}

// refusesWrongFields publishes a sale with several wrong fields, twice. Each is named.
func (v *visitor) refusesWrongFields() {
	v.t.Helper()
	v.open("/console")
	v.press("[data-open=new]")
	local := func(at time.Time) string { return at.Local().Format("2006-01-02T15:04:05") }
	v.fill("#n-price", "19.999")
	v.fill("#n-stock", "0")
	v.fill("#n-start", local(time.Now().Add(-2*time.Hour)))
	v.fill("#n-end", local(time.Now().Add(-time.Hour)))
	v.fill("#n-image", "http://example.org")
	for range 2 {
		v.press("#new button[value=show]")
		v.sees("#w-title", "Please fill this in.")
		v.sees("#w-price", "An amount such as 199.90.")
		v.sees("#w-stock", "A whole number from 1 to 100,000,000.")
		v.sees("#w-end", "This time has passed.")
		v.sees("#w-image", "https://")
		v.sees("#new .say", "Please correct the marked fields.")
	}
	v.becomes("the first wrong field has the focus", `document.activeElement.id === 'n-title'`)
	v.fitsEverybody("wrong fields")
	v.fill("#n-price", "10000000000.01")
	v.press("#new button[value=show]")
	v.sees("#w-price", "At most ¥10,000,000,000.00.")
	v.refusedByTheServer()
	v.refusesAPublicationAlone()
}

// refusesAPublicationAlone fills the open form with a sale whose end has passed. The server would
// take its draft, so the page must refuse to publish it before it makes a draft.
func (v *visitor) refusesAPublicationAlone() {
	v.t.Helper()
	title := "A kettle of yesterday on a " + v.device.name
	local := func(at time.Time) string { return at.Local().Format("2006-01-02T15:04:05") }
	for field, text := range map[string]string{
		"title": title, "price": "5", "stock": "10", "image": "", "description": "",
		"start": local(time.Now().Add(-2 * time.Hour)), "end": local(time.Now().Add(-time.Hour)),
	} {
		v.fill("#n-"+field, text)
	}
	v.press("#new button[value=show]")
	v.sees("#w-end", "This time has passed.")
	v.sees("#new .say", "Please correct the marked fields.")
	require.Empty(v.t, v.text("#w-title"), "only the end is wrong")
	titles := func() []string {
		return ask[[]string](v, `fetch('/admin/sales?limit=100').then((r) => r.json()).then(
			(answer) => answer.data.items.map((sale) => sale.title))`)
	}
	require.NotContains(v.t, titles(), title)
	v.press("#new button[value=draft]")
	v.becomes("the page of the draft", `location.pathname.startsWith('/console/sales/')`)
	require.Contains(v.t, titles(), title, "the server takes it as a draft")
	v.press("[data-open=delete]")
	v.press("#delete button[value=yes]")
	v.becomes("deleted", `location.pathname === '/console'`)
}

// refusedByTheServer fills the open form with values that only the server refuses. All are named at
// once, in words.
func (v *visitor) refusedByTheServer() {
	v.t.Helper()
	for field, text := range map[string]string{
		"title": "a\tkettle", "price": "5", "stock": "10", "start": "1999-12-31T10:00:00",
		"end":         time.Now().Add(time.Hour).Local().Format("2006-01-02T15:04:05"),
		"image":       "https://10.0.0.1/" + strings.Repeat("a", 1000),
		"description": "It holds\v1.2 litres.",
	} {
		v.fill("#n-"+field, text)
	}
	v.press("#new button[value=show]")
	v.sees("#w-title", "1 to 120 characters, without line breaks.")
	v.sees("#w-start", "A time of the years 2000 to 9999.")
	v.sees("#w-image", "A public https address of at most 1,000 characters.")
	v.sees("#w-description", "At most 4,000 characters, without control characters.")
	v.sees("#new .say", "Please correct the marked fields.")
	require.NotContains(v.t, v.text("#new"), "startAt", "no names of the API")
	v.becomes("the first wrong field has the focus", `document.activeElement.id === 'n-title'`)
}

// publishes makes a draft, edits it and publishes it.
func (v *visitor) publishes() (goods string) {
	v.t.Helper()
	v.press("[data-open=new]")
	local := func(at time.Time) string { return at.Local().Format("2006-01-02T15:04:05") }
	v.fill("#n-title", "A kettle")
	v.fill("#n-price", "199")
	v.fill("#n-start", local(time.Now().Add(-time.Minute)))
	v.fill("#n-end", local(time.Now().Add(time.Hour)))
	v.press("#new button[value=draft]")
	v.becomes("the sale's page is open", `location.pathname.startsWith('/console/sales/')`)
	v.becomes("editable", `!document.querySelector('[data-open=edit]').hidden`)
	v.press("[data-open=edit]")
	v.fill("#n-title", "A red kettle")
	v.fill("#n-price", "5.5")
	v.fill("#n-end", local(time.Now().Add(-30*time.Second)))
	v.press("#edit button[value=yes]")
	v.sees("#say", "Saved.")
	v.sees("h1", "A red kettle")
	v.press("[data-do=expose]")
	v.sees("#say", "The end of this sale has passed.")
	v.press("[data-open=edit]")
	v.fill("#n-end", local(time.Now().Add(time.Hour)))
	v.press("#edit button[value=yes]")
	v.sees("#say", "Saved.")
	v.press("[data-do=expose]")
	v.sees("#say", "Published.")
	v.sees("#ledger", "Stock ledger: in balance")
	return ask[string](v, `location.pathname.split('/').pop()`)
}

// TestConsole_CutsNoTextThatTheAPITakes types the longest texts of the API, which counts
// characters. Browsers count a character such as an emoji as two.
func TestConsole_CutsNoTextThatTheAPITakes(t *testing.T) {
	t.Parallel()
	h := standalone(t)
	v := h.enters(t, desktop, seckill.Merchant, 1, "Mei")
	v.open("/console")
	v.press("[data-open=new]")
	for field, most := range map[string]int{"title": 120, "description": 4000} {
		typed := ask[int](v, fmt.Sprintf(`(() => {
			const e = document.getElementById('n-%s');
			e.focus();
			document.execCommand('insertText', false, '\u{1FAD6}'.repeat(%d));
			return [...e.value].length;
		})()`, field, most))
		require.Equal(t, most, typed, field)
	}
}

// TestConsole_EndedSessionOffersSignIn ends a session behind an open page, which then has a link to
// sign in and come back.
func TestConsole_EndedSessionOffersSignIn(t *testing.T) {
	t.Parallel()
	h := standalone(t)
	mei := h.enters(t, narrow, seckill.Merchant, 1, "Mei")
	mei.open("/console/audit")
	mei.run(`fetch('/session', {method: 'DELETE'})`)
	mei.press("#choose button")
	mei.sees("#signed-out", "Your session has ended.")
	mei.fitsEverybody("an ended session")
	mei.press("#signed-out a")
	mei.becomes("signing in", `location.href.endsWith('/session?to=%2Fconsole%2Faudit')`)
	mei.signsInWith(h.token(t, seckill.Merchant, 1, "Mei"))
	mei.becomes("back", `location.pathname === '/console/audit'`)
}

// TestShop_HasItsOwnNameAndLogo sets both, as an operator does. Buyers and merchants see them, on a
// phone and a desktop.
func TestShop_HasItsOwnNameAndLogo(t *testing.T) {
	t.Parallel()
	logo := filepath.Join(t.TempDir(), "logo.svg")
	require.NoError(t, os.WriteFile(logo, []byte(`<svg xmlns="http://www.w3.org/2000/svg" width="40"
		height="20"><rect width="40" height="20" fill="#b8321a"/></svg>`), 0o600))
	h := standalone(t, "SECKILL_SHOP_NAME=Ann & Daughters, since 1998", "SECKILL_SHOP_LOGO="+logo)
	for _, d := range []device{desktop, narrow} {
		v := visit(t, h.base, d)
		for _, path := range []string{"/", "/session", "/console"} {
			if path == "/console" {
				v.signIn(h.token(t, seckill.Merchant, 1, "Mei"))
			}
			v.open(path)
			v.sees(".brand", "Ann & Daughters")
			v.becomes("the logo is drawn",
				`document.querySelector('.brand img').naturalWidth === 40`)
			require.Contains(t, ask[string](v, `document.title`), "Ann & Daughters, since 1998")
		}
		v.sees("main", "The shop is called “Ann & Daughters, since 1998”.")
		v.fitsEverybody("a console with a name and a logo")
	}
}

// TestConsole_EditKeepsTheHourThatComesTwice edits a sale that begins in the second of two hours
// at the end of summer time. The field shows the local time of both.
func TestConsole_EditKeepsTheHourThatComesTwice(t *testing.T) {
	t.Parallel()
	h := standalone(t)
	api := h.client(t, seckill.Merchant, 1)
	type times struct{ GoodsID, StartAt, EndAt string }
	var sale times
	begins := map[string]any{
		"title": kettle, "price": 100, "stock": 5, "startAt": "2032-11-07T06:30:00.000Z",
		"endAt": "2032-11-07T08:30:00.000Z",
	}
	require.NoError(t, api.Do(t.Context(), "POST", "/admin/sales", begins, &sale))
	v := h.enters(t, desktop, seckill.Merchant, 1, "Mei")
	v.alter(func(ctx context.Context, tab *chromedp.Target) (chromedp.Void, error) {
		zone := emulation.SetTimezoneOverrideParams{TimezoneID: "America/New_York"}
		_, err := cdp.Call(ctx, tab, emulation.SetTimezoneOverride, zone)
		return chromedp.Void{}, err
	})
	v.open("/console/sales/" + sale.GoodsID)
	v.press("[data-open=edit]")
	require.Contains(t, ask[string](v, `document.getElementById('n-start').value`), "T01:30")
	v.fill("#n-stock", "6")
	v.fill("#n-end", "2032-11-07T04:00:00")
	v.press("#edit button[value=yes]")
	v.sees("#say", "Saved.")
	after := times{GoodsID: sale.GoodsID}
	require.NoError(t, api.Do(t.Context(), "GET", "/admin/sales/"+sale.GoodsID, nil, &after))
	sale.EndAt = "2032-11-07T09:00:00.000Z"
	require.Equal(t, sale, after)
}
