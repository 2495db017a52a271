package browser

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill"
)

// The tour: a merchant puts up the last unit of something, two buyers fight for it, one wins and pays, the other hears
// it kindly; the merchant tops up, and the other one buys, cancels, and finds the sale paused, resumed and closed.
func TestTour(t *testing.T) {
	t.Run("standalone", func(t *testing.T) { tour(t, standalone(t), true, desktop, phone) })
	t.Run("real servers", func(t *testing.T) { tour(t, realServers(t), false, phone, desktop) })
}

const kettle = "Enamel kettle, 1.2 litres"

// tour shows the merchant on one device and the first buyer on another; the second buyer has a telephone at night.
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
	}
	goods := mei.putsUp(kettle, "199", 1, 15*time.Second) // their pages are open: it shows up by itself
	winner, loser := fight(t, ada, bo, goods)
	winner.pays(goods)
	mei.sees("#ledger", "Balances")
	mei.sees("[data-part=sold]", "1")
	mei.sees("#bought", "Paid")
	mei.shot("console-" + merchants.name)

	mei.press("[data-open=topup]")
	mei.fill("#t-n", "2")
	mei.press("#topup button[value=yes]")
	mei.sees("#say", "the new pieces are on sale")
	mei.sees("[data-part=total]", "3")
	loser.buys(goods, "It’s yours. Please pay by")
	loser.cancels(goods)
	mei.sees("[data-part=available]", "2")

	mei.press("[data-open=pause]")
	mei.press("#pause button[value=yes]")
	mei.sees("#say", "Paused")
	loser.sees(card(goods), "Starts in")
	mei.press("[data-do=resume]")
	mei.sees("#say", "On sale again")
	loser.buys(goods, "It’s yours. Please pay by")
	mei.press("[data-open=close]")
	mei.press("#close button[value=yes]")
	mei.sees("#say", "Closed.")
	loser.sees("#over", kettle)
	mei.sees("#ledger", "Balances")
}

// guest comes in with one click.
func (v *visitor) guest(name string) {
	v.t.Helper()
	v.open("/session")
	v.run(`[...document.querySelectorAll('.guest')].find((b) => b.innerText.includes('` + name + `')).click()`)
	v.becomes("signed in", `location.pathname !== '/session' && document.documentElement.dataset.user`)
}

// putsUp makes a sale in the console and shows it; it begins in a while and lasts an hour.
func (v *visitor) putsUp(title, price string, stock int, in time.Duration) (goods string) {
	v.t.Helper()
	v.open("/console")
	v.press("[data-open=new]")
	local := func(at time.Time) string { return at.Local().Format("2006-01-02T15:04:05") }
	v.fill("#n-title", title)
	v.fill("#n-price", price)
	v.run("document.querySelector('#n-stock').value = " + itoa(stock))
	v.fill("#n-start", local(time.Now().Add(in)))
	v.fill("#n-end", local(time.Now().Add(time.Hour)))
	v.press("#new button[value=show]")
	v.becomes("the sale's page is open", `location.pathname.startsWith('/console/sales/')`)
	v.sees("#ledger", "Balances")
	return ask[string](v, `location.pathname.split('/').pop()`)
}

// fight has both press at once as soon as the sale begins; exactly one wins.
func fight(t *testing.T, a, b *visitor, goods string) (winner, loser *visitor) {
	t.Helper()
	a.sees(card(goods), "Starts in")
	b.sees(card(goods)+" .buy", "Not yet")
	var both sync.WaitGroup
	for _, v := range []*visitor{a, b} {
		both.Go(func() {
			v.becomes("on sale", `!document.querySelector('`+card(goods)+` .buy').disabled`)
			v.run(`document.querySelector('` + card(goods) + ` .buy').click()`)
		})
	}
	both.Wait()
	for _, v := range []*visitor{a, b} {
		v.becomes("answered", `/It’s yours|All gone/.test(document.querySelector('`+card(goods)+` .say').innerText)`)
	}
	for _, v := range []*visitor{a, b} {
		v.sees(card(goods), "0 of 1 left")
	}
	if strings.Contains(a.text(card(goods)+" .say"), "It’s yours") {
		winner, loser = a, b
	} else {
		winner, loser = b, a
	}
	require.Contains(t, winner.text(card(goods)+" .say"), "Please pay by")
	require.Contains(t, loser.text(card(goods)+" .say"), "All gone, for now")
	return winner, loser
}

// buys presses once and waits to be answered.
func (v *visitor) buys(goods, answered string) {
	v.t.Helper()
	v.press(card(goods) + " .buy")
	v.sees(card(goods)+" .say", answered)
}

// order finds the buyer's newest order.
const order = "#orders-list .order:first-child"

func (v *visitor) pays(string) {
	v.t.Helper()
	v.sees(order, kettle)
	v.sees(order, "left to pay")
	v.press(order + " [data-part=pay]")
	v.sees(order, "Paid. Thank you.")
	v.becomes("nothing is left to do", `document.querySelector('`+order+`').dataset.status === 'paid'`)
	v.run(`document.getElementById('orders').scrollIntoView()`)
	v.shot("orders-" + v.device.name)
}

func (v *visitor) cancels(goods string) {
	v.t.Helper()
	v.sees(order, "To be paid")
	v.press(order + " [data-part=cancel]")
	v.press("#sure [value=keep]")
	// The dialog's close event of "keep" comes only after the next question is open.
	v.run(`for (const s of ['` + order + ` [data-part=cancel]', '#sure [value=keep]', '` + order + ` [data-part=cancel]'])
		document.querySelector(s).click()`)
	v.press("#sure [value=cancel]")
	v.sees(order, "Cancelled")
	v.becomes("it may be bought again", `!document.querySelector('`+card(goods)+` .buy').disabled`)
}
