package browser

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/loadgen/buyer"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/buyers"
	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/servers"
)

// TestPages_OnRealServers runs tests that share real servers and a node of each program: first
// those that load it or break its ledger, and then the others side by side.
func TestPages_OnRealServers(t *testing.T) {
	t.Parallel()
	h := realServers(t, allowsLoopback)
	t.Run("tour", func(t *testing.T) { tour(t, h, false, phone, desktop) })
	t.Run("rush", func(t *testing.T) { stayLiveDuringARush(t, h) })
	t.Run("ledger", func(t *testing.T) { showARedLedger(t, h) })
	t.Run("operations", func(t *testing.T) { showsOperations(t, h, narrow.at(true)) })
	for name, test := range map[string]func(*testing.T, fixture){
		"receipt": toTheReceipt, "cancelled": cancelsOnItsPage, "line": inTheLine,
		"code": withACode, "webhooks": usesWebhooks, "figures": showsTheSalesFigures,
		"audit": func(t *testing.T, h fixture) { filtersTheAudit(t, h, desktop) },
		"draw":  func(t *testing.T, h fixture) { recomputesADraw(t, h) },
		"sign-in": func(t *testing.T, h fixture) {
			provider, settings := issuer(t, servers.FreeAddr(t, "127.0.0.1"))
			node := h.joins(t, settings...)
			signsInAndOut(t, node.base, provider)
		},
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

// joins starts another node of the API, which the installation's other tests do not use.
func (h fixture) joins(t *testing.T, settings ...string) node {
	t.Helper()
	// The first node's addresses are its own.
	env := slices.DeleteFunc(slices.Clone(h.installation.APIs[0].Env), func(pair string) bool {
		return strings.HasPrefix(pair, "SECKILL_HTTP_ADDR=") ||
			strings.HasPrefix(pair, "SECKILL_OPS_ADDR=")
	})
	env = append(env, settings...)
	p := installation.StartProgram(t, "api", "SECKILL_HTTP_ADDR", env)
	h.base = "http://" + p.Addr
	return node{h, p}
}

// node is a fixture whose base is one node of the installation.
type node struct {
	fixture
	program *installation.Program
}

// refuses lets buyers ask for a sale that is sold out.
func (n node) refuses(t *testing.T, goods string, buyers ...int64) {
	t.Helper()
	for _, id := range buyers {
		answer, err := n.client(t, seckill.Buyer, id).Call(t.Context(), "POST",
			"/randomPath?goodsId="+goods, nil)
		require.NoError(t, err)
		require.Equal(t, "SOLD_OUT", answer.Reason)
	}
}

// showsTheSalesFigures opens a sale on one node while another node refuses buyers, restarts, and
// refuses more. The page shows the figures of the sale: they count all nodes and never fall. The
// only figure of a node says so.
func showsTheSalesFigures(t *testing.T, h fixture) {
	const seller = 41
	goods := h.sells(t, sale{title: "A thing of two nodes", stock: 1, merchant: seller})
	other := h.joins(t)
	other.won(t, 700, goods, 1)
	other.refuses(t, goods, 701, 702, 703)
	var pages []*visitor
	for _, d := range []device{desktop, phone.in("zh-CN")} {
		mei := visit(t, h.base, d)
		mei.before(`window.seen = []; const Real = window.EventSource;
			window.EventSource = class extends Real { constructor(url) { super(url);
				this.addEventListener('picture', (e) => setTimeout(() => window.seen.push(
					Number(document.querySelector('#reasons b')?.innerText ?? 0)))); } };`)
		mei.signIn(h.token(t, seckill.Merchant, seller, "Mei"))
		mei.open("/console")
		mei.sees("#found",
			map[bool]string{true: "Sales: 1 of 1", false: "1 个活动中的 1 个"}[d == desktop])
		mei.open("/console/sales/" + goods)
		mei.sees("#reasons b", "3")
		mei.sees("[data-part=sold]", "1")
		mei.sees(".tiles", map[bool]string{
			true: "99 of 100 purchases at this server within", false: "本服务器",
		}[d == desktop])
		pages = append(pages, mei)
	}
	require.NoError(t, other.program.Stop())
	other.program.Start(t)
	other.refuses(t, goods, 704, 705)
	for _, mei := range pages {
		mei.becomes("all refusals", `window.seen.at(-1) === 5`)
		seen := ask[[]int](mei, "window.seen")
		require.IsNonDecreasing(t, seen)
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
	ada.open("/")
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
	mei := h.enters(t, desktop, seckill.Merchant, 7, "Mei")
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
	ada := h.enters(t, phone, seckill.Buyer, 2, "Ada")
	ada.open("/")
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
				return ada.Do(t.Context(), "POST", pay, nil, nil) == nil
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

// TestSalePage_SlowLimiterIsReadOnceAtATime checks that the page has one question about a limit
// open while the server does not answer.
func TestSalePage_SlowLimiterIsReadOnceAtATime(t *testing.T) {
	t.Parallel()
	h := standalone(t)
	goods := h.sells(t, sale{title: kettle})
	ops := h.enters(t, desktop, seckill.Operator, 4, "Ops")
	ops.before(`const real = window.fetch.bind(window); window.unanswered = [];
		window.fetch = (path, options) => path.startsWith('/admin/limiters')
			? new Promise(() => window.unanswered.push(performance.now())) : real(path, options);`)
	ops.open("/console/sales/" + goods)
	ops.becomes("asked more than 5 s ago", `performance.now() - window.unanswered[0] > 5000`)
	require.LessOrEqual(t, ask[int](ops, `window.unanswered.length`), 2, "one at the start")
}
