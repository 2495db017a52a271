package browser

import (
	"flag"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill"
)

// TestTour_SellsTheLastUnitOnce plays the tour against standalone; TestPages_OnRealServers plays it
// against real servers.
func TestTour_SellsTheLastUnitOnce(t *testing.T) {
	t.Parallel()
	tour(t, standalone(t), true, desktop, phone)
}

// running is a standalone that a user has started, for the time from a clone to a first sale.
var running = flag.String("browser.running", "",
	"address of a running standalone for TestREADME_SellsAThingOfOnesOwn; empty: a new one")

// TestREADME_SellsAThingOfOnesOwn takes the steps of "Buy something in the browser" in the README,
// and fills in no more than they name. It logs how long they took.
func TestREADME_SellsAThingOfOnesOwn(t *testing.T) {
	t.Parallel()
	base := *running
	if base == "" {
		base = standalone(t).base
	}
	began := time.Now()
	mei, ada := visit(t, base, desktop), visit(t, base, phone)
	mei.open("/console")
	mei.chooseGuest("Mei")
	mei.becomes("the console", `location.pathname === '/console'`)
	mei.press("[data-open=new]")
	mei.fill("#n-title", "A lamp of my own")
	mei.fill("#n-price", "49.90")
	mei.press("#new button[value=show]")
	mei.sees("h1", "A lamp of my own")
	mei.press("[data-do=resume]")
	mei.sees("#say", "On sale now")

	ada.open("/session")
	ada.chooseGuest("Ada")
	ada.becomesSignedIn()
	ada.becomes("on sale", `[...document.querySelectorAll('.card')].some((c) =>
		c.innerText.includes('A lamp of my own') && c.querySelector('.buy').innerText === 'Buy')`)
	ada.run(`[...document.querySelectorAll('.card')].find((c) =>
		c.innerText.includes('A lamp of my own')).querySelector('h3 a').click()`)
	ada.sees("h1", "A lamp of my own")
	ada.press(".card .buy")
	ada.sees(".card .say", won)
	ada.press(".card .say a")
	ada.sees("#steps [aria-current]", "Address")
	ada.savesAddress("Ada Lovelace")
	ada.press("#pay")
	ada.sees("#say", "Paid. Thank you: your order is confirmed.")
	ada.becomes("the receipt", `document.getElementById('print').checkVisibility()`)
	mei.sees("#bought", "Paid")
	mei.sees("#bought", "A***")
	t.Logf("from the console to the receipt: %s", time.Since(began).Round(100*time.Millisecond))
}

const kettle = "Enamel kettle, 1.2 litres"

// tour sells one unit, for which two buyers compete. One wins and pays, and the other gets a
// refusal. The merchant adds units. The other buyer buys one, cancels, and sees the sale paused,
// resumed and closed. The second buyer has a phone at night.
func tour(t *testing.T, h fixture, guests bool, merchants, buyers device) {
	mei := visit(t, h.base, merchants)
	ada, bo := visit(t, h.base, buyers), visit(t, h.base, phone.at(true))
	if guests {
		mei.guest("Mei")
		ada.guest("Ada")
		bo.guest("Bo")
	} else {
		mei.signIn(h.token(t, seckill.Merchant, 1, "Mei"))
		ada.signIn(h.token(t, seckill.Buyer, 2, "Ada"))
		bo.signIn(h.token(t, seckill.Buyer, 3, "Bo"))
		ada.open("/")
		bo.open("/")
	}
	goods := mei.putsUp(kettle, "199", 1,
		15*time.Second) // the open pages show it without a reload
	winner, loser := fight(t, ada, bo, goods)
	winner.pays()
	mei.sees("#ledger", "Stock ledger: in balance")
	mei.sees("[data-part=sold]", "1")
	mei.sees("#bought", "Paid")

	mei.press("[data-open=topup]")
	mei.fill("#t-n", "2")
	mei.press("#topup button[value=yes]")
	mei.sees("#say", "the number of units has changed")
	mei.sees("[data-part=total]", "3")
	loser.buys(goods, won)
	loser.cancels(goods)
	mei.sees("[data-part=available]", "2")

	mei.press("[data-open=pause]")
	mei.press("#pause button[value=yes]")
	mei.sees("#say", "Paused")
	loser.sees(card(goods), "Starts in")
	mei.press("[data-do=resume]")
	mei.sees("#say", "On sale now")
	loser.buys(goods, won)
	mei.press("[data-open=close]")
	mei.press("#close button[value=yes]")
	mei.sees("#say", "The sale has ended")
	loser.sees("#over", kettle)
	mei.sees("#ledger", "Stock ledger: in balance")
}

// guest signs a visitor in as a guest, with one click.
func (v *visitor) guest(name string) {
	v.t.Helper()
	v.open("/session")
	v.chooseGuest(name)
	v.becomesSignedIn()
}

// chooseGuest chooses an account of the open page.
func (v *visitor) chooseGuest(name string) {
	v.t.Helper()
	v.run(`[...document.querySelectorAll('.guest')].find((b) =>
		b.innerText.includes('` + name + `')).click()`)
}

// putsUp creates a sale in the console and shows it. It begins after the given time and lasts an
// hour.
func (v *visitor) putsUp(title, price string, stock int, in time.Duration) (goods string) {
	v.t.Helper()
	v.open("/console")
	v.press("[data-open=new]")
	local := func(at time.Time) string { return at.Local().Format("2006-01-02T15:04:05") }
	v.fill("#n-title", title)
	v.fill("#n-price", price)
	v.fill("#n-stock", strconv.Itoa(stock))
	v.fill("#n-start", local(time.Now().Add(in)))
	v.fill("#n-end", local(time.Now().Add(time.Hour)))
	v.press("#new button[value=show]")
	v.becomes("the sale's page is open", `location.pathname.startsWith('/console/sales/')`)
	v.sees("#ledger", "Stock ledger: in balance")
	return ask[string](v, `location.pathname.split('/').pop()`)
}

// fight lets both buyers press at once when the sale begins. Exactly one wins.
func fight(t *testing.T, a, b *visitor, goods string) (winner, loser *visitor) {
	t.Helper()
	a.sees(card(goods), "Starts in")
	b.sees(card(goods)+" .buy", "Not yet")
	var both sync.WaitGroup
	for _, v := range []*visitor{a, b} {
		both.Go(func() {
			v.becomes("on sale", element(goods, "buy")+`.ariaDisabled === 'false'`)
			v.run(element(goods, "buy") + `.click()`)
		})
	}
	both.Wait()
	for _, v := range []*visitor{a, b} {
		v.becomes("answered",
			`/It’s yours|Sold out for now/.test(`+element(goods, "say")+`.innerText)`)
	}
	for _, v := range []*visitor{a, b} {
		v.sees(card(goods), "0 of 1 left")
	}
	winner, loser = a, b
	if !strings.Contains(a.text(card(goods)+" .say"), "It’s yours") {
		winner, loser = b, a
	}
	require.Contains(t, winner.text(card(goods)+" .say"), "Please pay by")
	require.Contains(t, loser.text(card(goods)+" .say"), "Sold out for now")
	return winner, loser
}

// buys presses once and waits for an answer.
func (v *visitor) buys(goods, answered string) {
	v.t.Helper()
	v.press(card(goods) + " .buy")
	v.sees(card(goods)+" .say", answered)
}

// order selects the buyer's newest order.
const order = "#orders-list .order:first-child"

func (v *visitor) pays() {
	v.t.Helper()
	v.sees(order, kettle)
	v.sees(order, "Payment due in")
	v.press(order + " [data-part=pay]")
	v.sees(order, "Paid. Thank you.")
	v.becomes("paid", `document.querySelector('`+order+`').dataset.status === 'paid'`)
}

func (v *visitor) cancels(goods string) {
	v.t.Helper()
	v.sees(order, "Awaiting payment")
	v.press(order + " [data-part=cancel]")
	v.press("#sure [value=keep]")
	// The dialog's close event of "keep" comes only after the next question is open.
	const ask, keep = order + " [data-part=cancel]", "#sure [value=keep]"
	v.run(fmt.Sprintf(`for (const s of [%q, %q, %q]) document.querySelector(s).click()`, ask, keep,
		ask))
	v.press("#sure [value=cancel]")
	v.sees(order, "Cancelled")
	v.becomes("it may be bought again", element(goods, "buy")+`.ariaDisabled === 'false'`)
}
