package history

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/loadgen/apiclient"
	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/must"
)

const (
	sales    = 4 // of a history
	units    = 9 // of a sale at its start
	limit    = 3 // of a buyer
	buyers   = 4
	devices  = 8 // two of each buyer
	paths    = 4 // of each device and sale
	merchant = devices
	// asks is how many operations a device performs.
	asks = 32
	// tasks is how many operations the merchant performs, the closing of the sales included.
	tasks = 30
)

// recording is one history while it is recorded.
type recording struct {
	*installation.Installation
	*recorder
	goods     []string
	purchases [][]*purchase // by sale and number
	cuts      bool          // the merchant cuts units too
	// asked and managed are the operations that the devices and the merchant have done.
	asked, managed atomic.Int64
}

// record lets all clients work while a fault is injected, and returns the history. drain makes it
// wait until no work is under way, and read everything once more.
func record(
	t *testing.T, r *installation.Installation, seed uint64, f fault, drain bool,
) []porcupine.Operation {
	rec := &recording{Installation: r, recorder: newRecorder(), cuts: !f.losesEpoch}
	clients := make([]*client, devices+1)
	for id := range clients {
		clients[id] = rec.client(t, id, seed)
	}
	rec.putUp(t, clients[:devices])
	var wg sync.WaitGroup
	for _, c := range clients[:devices] {
		wg.Go(func() { c.asDevice(t.Context()) })
	}
	wg.Go(func() { clients[merchant].asMerchant(t.Context()) })
	f.inject(t, rec)
	wg.Wait()
	if drain {
		rec.drain(t, clients[merchant])
	}
	rec.applied()
	if drain {
		rec.readAll(t.Context(), clients)
	}
	return rec.history(len(clients))
}

// client returns a client. Its random numbers are drawn from the seed.
func (r *recording) client(t *testing.T, id int, seed uint64) *client {
	c := &client{
		recording: r, id: id, http: apiclient.NewHTTP(4),
		rng: rand.New(rand.NewPCG(seed, uint64(id))),
	}
	c.http.Timeout = callTimeout
	t.Cleanup(c.http.CloseIdleConnections)
	if id == merchant {
		c.token = r.Merchant(t).Token
	} else {
		c.token = must.Get(r.BuyerToken(int64(id%buyers) + 1))(t)
	}
	return c
}

// putUp creates the sales and fetches all random paths. A sale that is sold out or closed issues
// none, and a history needs the refusals of reserve.
func (r *recording) putUp(t *testing.T, devices []*client) {
	for n := range sales {
		r.goods = append(r.goods, r.PutUp(t, units, limit))
		r.purchases = append(r.purchases, nil)
		for _, c := range devices {
			for range paths {
				r.purchases[n] = append(r.purchases[n], c.newPurchase(t, n))
			}
		}
	}
}

// newPurchase fetches a random path.
func (c *client) newPurchase(t *testing.T, sale int) *purchase {
	p := &purchase{request: request{
		Kind: reserve, Sale: sale, Buyer: c.id % buyers, Order: len(c.purchases[sale]),
	}}
	p.Units = 1 + p.Order%2
	fetch := attempt{
		method: http.MethodPost, path: "/randomPath?goodsId=" + c.goods[sale],
		read: func(a apiclient.Answer) answer {
			p.path = decode[struct{ RandomPath string }](a).RandomPath
			return answer{Reason: a.Reason}
		},
	}
	require.Eventually(t, func() bool {
		p.issued = time.Now()
		out, _ := c.once(t.Context(), c.id, fetch)
		return out.Reason == ok
	}, patience, time.Millisecond, "no random path")
	return p
}

// asDevice performs the operations of a buyer's device, none far ahead of the merchant.
func (c *client) asDevice(ctx context.Context) {
	fresh := make(map[int][]*purchase)
	for n, all := range c.purchases {
		fresh[n] = all[c.id*paths : (c.id+1)*paths]
	}
	for i := range asks {
		const ahead = 0.1
		await(ctx, patience, func() bool {
			return float64(c.managed.Load())/tasks >= float64(i)/asks-ahead
		})
		c.ask(ctx, fresh)
		c.asked.Add(1)
	}
}

// asMerchant performs the merchant's operations, spread over the buyers'. The sales close one after
// the other in the last third.
func (c *client) asMerchant(ctx context.Context) {
	made := make(map[kind]int)
	for i := range tasks {
		c.awaitShare(ctx, float64(i)/tasks, patience)
		if n := (i - tasks*2/3) / 2; i >= tasks*2/3 && n < sales {
			c.end(ctx, n, i%2 == 0)
		} else {
			c.manage(ctx, c.rng.IntN(sales), made)
		}
		c.managed.Add(1)
	}
}

// manage performs one operation that the merchant's random numbers choose.
func (c *client) manage(ctx context.Context, sale int, made map[kind]int) {
	k := []kind{ledger, ledger, ledger, add, cut}[c.rng.IntN(5)]
	if k == ledger || k == add && made[add] == maxAdds || k == cut && !c.cuts {
		c.readLedger(ctx, sale, false)
		return
	}
	c.amend(ctx, k, sale, made[k], 1+c.rng.IntN(2))
	made[k]++
}

// end closes a sale, and then tries to change it.
func (c *client) end(ctx context.Context, sale int, first bool) {
	if first {
		c.closeSale(ctx, sale)
		return
	}
	c.amend(ctx, cut, sale, tasks, 1)
	c.readLedger(ctx, sale, false)
}

// awaitShare waits until a share of the buyers' operations is done, at most for so long.
func (r *recording) awaitShare(ctx context.Context, share float64, atMost time.Duration) {
	await(ctx, atMost, func() bool { return float64(r.asked.Load()) >= share*asks*devices })
}

// await waits for a condition, at most for so long.
func await(ctx context.Context, atMost time.Duration, reached func() bool) {
	for until := time.Now().Add(atMost); !reached() && time.Now().Before(until); {
		if apiclient.Sleep(ctx, time.Millisecond) != nil {
			return
		}
	}
}

// drain waits until every promised order is written and every stock move is applied.
func (r *recording) drain(t *testing.T, c *client) {
	caller := apiclient.Client{Base: r.Base(0), Token: c.token, HTTP: c.http}
	for _, goods := range r.goods {
		require.Eventually(t, func() bool {
			l, err := caller.Ledger(t.Context(), goods)
			return err == nil && l.Pending == 0 && l.Balanced && l.Available == l.Database.Stock
		}, 2*time.Minute, pause, "goods %s is not drained", goods)
	}
}

// readAll reads every ledger and every promised order.
func (r *recording) readAll(ctx context.Context, clients []*client) {
	for n, purchases := range r.purchases {
		clients[merchant].readLedger(ctx, n, true)
		for _, p := range purchases {
			if p.number() != "" {
				clients[p.Buyer].readStatus(ctx, p, true)
			}
		}
	}
}
