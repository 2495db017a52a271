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

// TestPages_OnRealServers runs tests that share real servers and a node of each program: first those
// that load it or break its ledger, and then the others side by side.
func TestPages_OnRealServers(t *testing.T) {
	t.Parallel()
	h := realServers(t, allowsLoopback)
	t.Run("tour", func(t *testing.T) { tour(t, h, false, phone, desktop) })
	t.Run("rush", func(t *testing.T) { stayLiveDuringARush(t, h) })
	t.Run("ledger", func(t *testing.T) { showARedLedger(t, h) })
	for name, test := range map[string]func(*testing.T, fixture){
		"receipt": toTheReceipt, "cancelled": cancelsOnItsPage, "line": inTheLine,
		"code": withACode, "webhooks": usesWebhooks,
		"orders": func(t *testing.T, h fixture) { managesOrders(t, h, narrow, 100) },
		"key":    func(t *testing.T, h fixture) { makesAKey(t, h, desktop, 20) },
		"line of two tabs": func(t *testing.T, h fixture) {
			h.waits(t, linesOf[0], 300).inTwoTabs()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, h)
		})
	}
}

// stayLiveDuringARush opens the shop's page repeatedly while 5,000 buyers rush for 2,500 units. The
// console gets a snapshot each second. Both end with the figures of MySQL.
func stayLiveDuringARush(t *testing.T, h fixture) {
	goods := h.installation.PutUp(t, 2500, 1)
	mei, ada := visit(t, h.base, desktop), visit(t, h.base, phone)
	mei.signIn(h.token(t, seckill.Merchant, 7, "Mei"))
	mei.before(`window.pictures = []; const Real = window.EventSource;
		window.EventSource = class extends Real { constructor(url) { super(url);
			this.addEventListener('picture',
				(e) => window.pictures.push(JSON.parse(e.data))); } };`)
	mei.open("/console/sales/" + goods)
	mei.sees("#ledger", "Stock ledger: in balance")
	ada.signIn(h.token(t, seckill.Buyer, 4_000_000, "Ada"))
	ada.sees(card(goods), "2,500 of 2,500 left")

	over := make(chan buyers.Report, 1)
	go func() {
		report, err := buyers.Run(t.Context(), buyers.Plan{
			Bases: []string{h.base}, GoodsID: goods, Buyers: 5000, Concurrency: 100, FirstID: 1000,
			Token: h.installation.BuyerToken, Spread: 12 * time.Second, RetryErrors: true,
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
	mei.sees("#ledger", "Stock ledger: in balance")
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
	require.Positive(t, between, "no snapshot between the first and the last sale")
	t.Logf("%d snapshots, %d of them while units were left; the slowest page took %s",
		len(pictures), between, slowest)
}

// showARedLedger checks that the ledger is red while it does not balance.
func showARedLedger(t *testing.T, h fixture) {
	goods := h.installation.PutUp(t, 40, 1)
	mei := visit(t, h.base, desktop)
	mei.signIn(h.token(t, seckill.Merchant, 7, "Mei"))
	mei.open("/console/sales/" + goods)
	mei.sees("#ledger", "Stock ledger: in balance")
	const colour = `getComputedStyle(document.getElementById('ledger')).borderColor`
	green := ask[string](mei, colour)
	redis := h.installation.RedisClient(t)
	require.NoError(t, redis.HIncrBy(t.Context(), "sk:{"+goods+"}", "avail", -1).Err())
	mei.sees("#ledger", "Stock ledger: not in balance")
	require.NotEqual(t, green, ask[string](mei, colour))
	mei.fitsEverybody("a ledger that does not balance")
	require.NoError(t, redis.HIncrBy(t.Context(), "sk:{"+goods+"}", "avail", 1).Err())
	mei.sees("#ledger", "Stock ledger: in balance")
}

// TestOperatorPages_ChangeALimit lowers a sale's limit, which refuses the next request. It also
// opens the list of dead letters.
func TestOperatorPages_ChangeALimit(t *testing.T) {
	t.Parallel()
	h := standalone(t)
	goods := h.sells(t, sale{title: kettle, perBuyer: 5})
	ops := visit(t, h.base, desktop)
	ops.guest("Ops")
	ops.open("/console/sales/" + goods)
	ops.becomes("the limiter is there",
		`document.querySelector('.limiter [name=permitsPerSecond]').value === '1000'`)
	for name, value := range map[string]string{
		"permitsPerSecond": "0.01", "maxBurstSeconds": "100", "maxWaitMillis": "0",
	} {
		ops.fill(".limiter [name="+name+"]", value)
	}
	ops.press(".limiter button:not([type=button])")
	ops.sees(".limiter .say", "The new limit applies now")
	ops.sees(".limiter", "set by an operator")
	ada := visit(t, h.base, phone)
	ada.signIn(h.token(t, seckill.Buyer, 2, "Ada"))
	ada.buys(goods, won)
	ada.press(card(goods) + " .buy")
	ada.sees(card(goods)+" .say", "Many people are asking at once")
	ops.press(".limiter [data-part=drop]")
	ops.press("#remove [value='']")
	ops.sees(".limiter", "set by an operator")
	ops.press(".limiter [data-part=drop]")
	ops.press("#remove [value=yes]")
	ops.sees(".limiter", "the sale’s own")
	ada.run(`document.querySelector('` + card(goods) + ` .say button')?.click()`)
	ops.open("/console/operations")
	ops.sees("#dead-letters-none", "No failed orders")
	ops.fill("#l-rule", "nonsense")
	ops.press("#choose button")
	ops.becomes("refused",
		`document.querySelector('#l-rule').validationMessage === 'There is no such limiter.'`)
}

// TestOrders_AreFilteredAndExported filters the merchant's orders by status, and downloads the same
// orders as CSV.
func TestOrders_AreFilteredAndExported(t *testing.T) {
	t.Parallel()
	h := standalone(t)
	goods := h.sells(t, sale{title: kettle})
	for id := range int64(3) {
		ada := h.client(t, seckill.Buyer, 10+id)
		var path struct{ RandomPath string }
		require.NoError(t, ada.Do(t.Context(), "POST", "/randomPath?goodsId="+goods, nil, &path))
		var made struct{ OrderSn string }
		target := fmt.Sprintf("/%s/decrStock?goodsId=%s", path.RandomPath, goods)
		require.NoError(t, ada.Do(t.Context(), "POST", target, nil, &made))
		if id == 0 {
			require.Eventually(t, func() bool {
				pay := "/orders/" + made.OrderSn + "/pay"
				return ada.Do(t.Context(), "POST", pay, nil, &struct{}{}) == nil
			}, patience, 20*time.Millisecond)
		}
	}
	mei := visit(t, h.base, desktop)
	mei.guest("Mei")
	mei.open("/console/sales/" + goods)
	mei.becomes("all are there", `document.querySelectorAll('#bought tr').length === 3`)
	mei.fill("#filter", "paid")
	mei.becomes("one has paid", `document.querySelectorAll('#bought tr').length === 1 &&
		document.querySelector('#bought').innerText.includes('Paid')`)
	file := ask[string](mei, `fetch(document.getElementById('csv').href).then((r) => r.text())`)
	require.Equal(t, 2, strings.Count(file, "\n"), file)
	require.Contains(t, file, ",paid,")
}
