package history

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"flashsale.dev/seckill/internal/loadgen/apiclient"
	"flashsale.dev/seckill/internal/ordersn"
)

const (
	// callTimeout limits one attempt of a client.
	callTimeout = 5 * time.Second
	// patience limits a client's attempts at one operation.
	patience = time.Minute
	// pause is the time between two attempts.
	pause = 20 * time.Millisecond
	// givesUp is the share of operations whose client does not ask again after an unknown outcome.
	givesUp = 0.15
)

// purchase is one random path and the order that it may become.
type purchase struct {
	request        // with Kind reserve
	path    string // the random path
	issued  time.Time

	mu sync.Mutex
	sn string // the order number; "" until it is promised
}

// number returns the order number, or "".
func (p *purchase) number() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sn
}

// orderOf returns the order of a number that the purchase's path was answered.
func (p *purchase) orderOf(sn string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sn == "" {
		p.sn = sn
	}
	if p.sn != sn {
		return -1
	}
	return p.Order
}

// client is one user's device. It has one operation under way at a time.
type client struct {
	*recording
	id    int
	token string
	http  *http.Client
	rng   *rand.Rand
}

// attempt is one call of an operation.
type attempt struct {
	method, path string
	body         any
	key          string // its Idempotency-Key, or ""
	read         func(apiclient.Answer) answer
}

// do performs an operation. It asks again, at the next API, while the outcome is unknown.
func (c *client) do(ctx context.Context, in request, a attempt) {
	first, until := c.now(), time.Now().Add(c.patienceFor(in))
	for called, try := first, 0; ; called, try = c.now(), try+1 {
		if out, known := c.once(ctx, c.id+try, a); known {
			c.answered(in, out, first, called)
			return
		}
		if time.Now().After(until) || apiclient.Sleep(ctx, pause) != nil {
			c.unanswered(in, first)
			return
		}
	}
}

// patienceFor draws whether the client asks again. The merchant always repeats a close, because a
// sale that is closed in MySQL alone refuses changes and still sells. It always repeats a cut,
// because a close undoes a cut that Redis has applied and MySQL has not.
func (c *client) patienceFor(in request) time.Duration {
	always := in.Drained || in.Kind == closing || in.Kind == cut
	if !always && c.rng.Float64() < givesUp {
		return 0
	}
	return patience
}

// answered records an operation whose last attempt was called at a time and has an answer.
//
// Every request is safe to repeat. Several attempts of which the last had its effect are one
// operation from the first call on. The effect came once and in this time. Where the last one was
// refused, an earlier one may still have its effect, and stays open.
func (c *client) answered(in request, out answer, first, called int64) {
	switch {
	case first == called || in.reads():
	case out.effective():
		called = first
	default:
		c.unanswered(in, first)
	}
	if in.Kind == reserve {
		age := time.Since(c.purchases[in.Sale][in.Order].issued)
		in.Overdue = age > ordersn.PathTTL-time.Second // numbers have whole seconds
	}
	c.add(c.id, in, out, called)
}

// unanswered leaves an operation open. A read without an answer says nothing.
func (c *client) unanswered(in request, call int64) {
	if !in.reads() {
		c.leaveOpen(in, call)
	}
}

// once makes one attempt. It returns false without an answer, and for 503.
func (c *client) once(ctx context.Context, api int, a attempt) (answer, bool) {
	h := *c.http
	if a.key != "" {
		h.Transport = keyed{c.http.Transport, a.key}
	}
	caller := apiclient.Client{Base: c.Base(api), Token: c.token, HTTP: &h}
	got, err := caller.Call(ctx, a.method, a.path, a.body)
	if err != nil || got.Status == http.StatusServiceUnavailable {
		return answer{}, false
	}
	if a.read == nil || got.Status >= 300 && got.Reason != soldOut && got.Reason != limitReached {
		return answer{Reason: got.Reason}, true
	}
	return a.read(got), true
}

// keyed adds an Idempotency-Key to requests.
type keyed struct {
	http.RoundTripper
	key string
}

func (k keyed) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Idempotency-Key", k.key)
	return k.RoundTripper.RoundTrip(r)
}

// decode reads the data of an answer.
func decode[T any](a apiclient.Answer) (data T) {
	a.Status = http.StatusOK // a refusal has data too
	_ = a.Into(&data)        // an answer without the data has its zero value
	return data
}

// buy reserves with a random path, for the first time or again.
func (c *client) buy(ctx context.Context, p *purchase) {
	body := map[string]any{"goodsId": c.goods[p.Sale], "decrStock": p.Units}
	read := func(a apiclient.Answer) answer {
		data := decode[struct {
			OrderSn   string
			Available int
			OrderSns  []string
		}](a)
		out := answer{Reason: a.Reason, Available: data.Available, Held: len(data.OrderSns)}
		if a.Reason == queued {
			out.Order = p.orderOf(data.OrderSn)
		}
		return out
	}
	c.do(ctx, p.request, attempt{http.MethodPost, "/" + p.path + "/decrStock", body, "", read})
}

// change pays or cancels an order.
func (c *client) change(ctx context.Context, k kind, p *purchase) {
	in := p.request
	in.Kind = k
	path := fmt.Sprintf("/orders/%s/%s", p.number(), k)
	c.do(ctx, in, attempt{method: http.MethodPost, path: path})
}

// readStatus reads an order.
func (c *client) readStatus(ctx context.Context, p *purchase, drained bool) {
	in := p.request
	in.Kind, in.Drained = status, drained
	read := func(a apiclient.Answer) answer {
		return answer{Reason: a.Reason, Status: decode[struct{ Status string }](a).Status}
	}
	c.do(ctx, in, attempt{method: http.MethodGet, path: "/orders/" + p.number(), read: read})
}

// ask performs one operation that the client's random numbers choose.
func (c *client) ask(ctx context.Context, fresh map[int][]*purchase) {
	n := c.rng.IntN(len(c.goods))
	dice := c.rng.Float64()
	if dice < 0.5 && len(fresh[n]) > 0 {
		p := fresh[n][0]
		fresh[n] = fresh[n][1:]
		c.buy(ctx, p)
		return
	}
	p := c.promised(n)
	switch {
	case p == nil:
	case dice < 0.62:
		c.buy(ctx, p)
	case dice < 0.75:
		c.change(ctx, cancel, p)
	case dice < 0.85:
		c.change(ctx, pay, p)
	default:
		c.readStatus(ctx, p, false)
	}
}

// promised draws one of the promised orders of the client's buyer, or nil.
func (c *client) promised(sale int) *purchase {
	mine := slices.DeleteFunc(slices.Clone(c.purchases[sale]), func(p *purchase) bool {
		return p.Buyer != c.id%buyers || p.number() == ""
	})
	if len(mine) == 0 {
		return nil
	}
	return mine[c.rng.IntN(len(mine))]
}

// amend adds units to a sale or cuts some of its unsold ones.
func (c *client) amend(ctx context.Context, k kind, sale, n, units int) {
	delta := units
	if k == cut {
		delta = -units
	}
	key := fmt.Sprintf("history-%s-%s-%d", c.goods[sale], k, n)
	c.do(ctx, request{Kind: k, Sale: sale, Order: n, Units: units}, attempt{
		method: http.MethodPatch, path: "/admin/sales/" + c.goods[sale],
		body: map[string]int{"stockDelta": delta}, key: key,
	})
}

// closeSale closes a sale.
func (c *client) closeSale(ctx context.Context, sale int) {
	path := "/admin/sales/" + c.goods[sale] + "/close"
	c.do(ctx, request{Kind: closing, Sale: sale}, attempt{method: http.MethodPost, path: path})
}

// readLedger reads the ledger of a sale.
func (c *client) readLedger(ctx context.Context, sale int, drained bool) {
	read := func(a apiclient.Answer) answer {
		l := decode[apiclient.Ledger](a)
		return answer{
			Reason: a.Reason, Total: int(l.Total), Available: int(l.Available),
			Pending: int(l.Pending), Sold: int(l.Sold),
		}
	}
	c.do(ctx, request{Kind: ledger, Sale: sale, Drained: drained}, attempt{
		method: http.MethodGet, path: "/admin/sales/" + c.goods[sale] + "/ledger", read: read,
	})
}
