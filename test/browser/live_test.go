package browser

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/loadgen/buyer"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/buyers"
)

// While 5,000 buyers rush 2,500 units on real servers, the shop's page and the console go on living: a visitor opens
// pages, the console gets its picture every second, and both end at what MySQL says.
func TestPagesLiveThroughARush(t *testing.T) {
	h := realServers(t)
	goods := h.installation.PutUp(t, 2500, 1)
	mei, ada := visit(t, h.base, desktop), visit(t, h.base, phone)
	mei.signIn(h.token(t, seckill.Merchant, 7, "Mei"))
	mei.before(`window.pictures = []; const Real = window.EventSource;
		window.EventSource = class extends Real { constructor(url) { super(url); this.addEventListener('picture', (e) => window.pictures.push(JSON.parse(e.data))); } };`)
	mei.open("/console/sales/" + goods)
	mei.sees("#ledger", "Balances")
	ada.signIn(h.token(t, seckill.Buyer, 4_000_000, "Ada"))
	ada.sees(card(goods), "2,500 of 2,500 left")

	over := make(chan buyers.Report, 1)
	go func() {
		report, err := buyers.Run(t.Context(), buyers.Plan{
			Bases: []string{h.base}, GoodsID: goods, Buyers: 5000, Concurrency: 100, FirstID: 1000, Token: h.installation.BuyerToken, Spread: 12 * time.Second, RetryErrors: true,
		})
		if err != nil {
			t.Errorf("the rush: %v", err)
		}
		over <- report
	}()
	var slowest time.Duration
	for rushing := true; rushing; {
		select {
		case report := <-over:
			rushing = false
			require.Equal(t, 2500, report.Count(buyer.Won))
		default:
			began := time.Now()
			ada.open("/")
			slowest = max(slowest, time.Since(began))
		}
	}
	mei.sees("#reasons", "Sold out")
	mei.shot("console-rush")
	ada.sees(card(goods), "0 of 2,500 left")
	ada.sees(card(goods)+" .buy", "Sold out")
	mei.sees("[data-part=sold]", "2,500")
	mei.sees("#ledger", "Balances")
	pictures := ask[[]struct {
		Figures struct{ Available, Sold int64 }
		Ledger  *struct{ Total, Available, Pending, Sold int64 }
	}](mei, "window.pictures")
	between := 0
	for _, p := range pictures {
		if p.Ledger != nil {
			require.Equal(t, p.Ledger.Total, p.Ledger.Available+p.Ledger.Pending+p.Ledger.Sold)
		}
		if p.Figures.Available > 0 && p.Figures.Available < 2500 {
			between++
		}
	}
	require.Positive(t, between, "the console saw it go")
	t.Logf("%d pictures, %d of them in the middle; the slowest page was whole in a browser after %s", len(pictures), between, slowest)
}

// The ledger is red the moment it does not balance, and green again when it does.
func TestTheLedgerIsRedWhenItDoesNotBalance(t *testing.T) {
	h := realServers(t)
	goods := h.installation.PutUp(t, 40, 1)
	mei := visit(t, h.base, desktop)
	mei.signIn(h.token(t, seckill.Merchant, 7, "Mei"))
	mei.open("/console/sales/" + goods)
	mei.sees("#ledger", "Balances")
	green := ask[string](mei, `getComputedStyle(document.getElementById('ledger')).borderColor`)
	redis := h.installation.RedisClient(t)
	require.NoError(t, redis.HIncrBy(t.Context(), "sk:{"+goods+"}", "avail", -1).Err())
	mei.sees("#ledger", "Does not balance")
	require.NotEqual(t, green, ask[string](mei, `getComputedStyle(document.getElementById('ledger')).borderColor`))
	mei.fitsEverybody("a ledger that does not balance")
	mei.shot("ledger-red")
	require.NoError(t, redis.HIncrBy(t.Context(), "sk:{"+goods+"}", "avail", 1).Err())
	mei.sees("#ledger", "Balances")
}

// An operator slows a sale's door down, and sees it bite; and resolves a dead letter.
func TestAnOperatorsDay(t *testing.T) {
	h := standalone(t)
	goods := h.sale(t, kettle, 100, 50, 5, -time.Minute, time.Hour)
	ops := visit(t, h.base, desktop)
	ops.guest("Ops")
	ops.open("/console/sales/" + goods)
	ops.becomes("the limiter is there", `document.querySelector('.limiter [name=permitsPerSecond]').value === '1000'`)
	for name, value := range map[string]string{"permitsPerSecond": "0.01", "maxBurstSeconds": "100", "maxWaitMillis": "0"} {
		ops.fill(".limiter [name="+name+"]", value)
	}
	ops.press(".limiter button:not([type=button])")
	ops.sees(".limiter .say", "It bites at once")
	ops.sees(".limiter", "set by an operator")
	ada := visit(t, h.base, phone)
	ada.signIn(h.token(t, seckill.Buyer, 2, "Ada"))
	ada.buys(goods, won)
	ada.press(card(goods) + " .buy")
	ada.sees(card(goods)+" .say", "Many people are at the door")
	ops.press(".limiter [data-part=drop]")
	ops.sees(".limiter", "the sale’s own")
	ada.run(`document.querySelector('` + card(goods) + ` .say button')?.click()`)
	ops.open("/console/operations")
	ops.sees("#dead-letters-none", "None.")
	ops.fill("#l-rule", "nonsense")
	ops.press("#choose button")
	ops.becomes("said so", `document.querySelector('#l-rule').validationMessage === 'There is no such limiter.'`)
}

// A merchant finds orders, and takes them home as a file.
func TestOrdersAreFilteredAndTakenHome(t *testing.T) {
	h := standalone(t)
	goods := h.sale(t, kettle, 100, 50, 1, -time.Minute, time.Hour)
	for id := range int64(3) {
		ada := h.client(t, seckill.Buyer, 10+id)
		var path struct{ RandomPath string }
		require.NoError(t, ada.Do(t.Context(), "POST", "/randomPath?goodsId="+goods, nil, &path))
		var made struct{ OrderSn string }
		require.NoError(t, ada.Do(t.Context(), "POST", fmt.Sprintf("/%s/decrStock?goodsId=%s", path.RandomPath, goods), nil, &made))
		if id == 0 {
			require.Eventually(t, func() bool {
				return ada.Do(t.Context(), "POST", "/orders/"+made.OrderSn+"/pay", nil, &struct{}{}) == nil
			}, patience, 20*time.Millisecond)
		}
	}
	mei := visit(t, h.base, desktop)
	mei.guest("Mei")
	mei.open("/console/sales/" + goods)
	mei.becomes("all are there", `document.querySelectorAll('#bought tr').length === 3`)
	mei.run(`(() => { const f = document.getElementById('filter'); f.value = 'paid'; f.dispatchEvent(new Event('change')); })()`)
	mei.becomes("one has paid", `document.querySelectorAll('#bought tr').length === 1 && document.querySelector('#bought').innerText.includes('Paid')`)
	file := ask[string](mei, `fetch(document.getElementById('csv').href).then((r) => r.text())`)
	require.Equal(t, 2, strings.Count(file, "\n"), file)
	require.Contains(t, file, ",paid,")
}
