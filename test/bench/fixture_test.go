package bench

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/app/connect"
	"flashsale.dev/seckill/internal/config"
	"flashsale.dev/seckill/internal/loadgen/buyer"
	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/must"
)

const (
	secret = installation.Secret
	// connections is large enough for batches of requests, and small enough for a laptop.
	connections = 128
	// endless units are more than any benchmark sells.
	endless = 10_000_000
)

// fixture is an installation of one API and one consumer, with its servers.
type fixture struct {
	*installation.Installation
	b      *testing.B
	client redis.UniversalClient
	api    string // the API's address
}

func newFixture(b *testing.B) *fixture {
	b.Helper()
	return newFixtureOf(b, "")
}

// newFixtureOf runs the programs of a folder; "" is this commit's build.
func newFixtureOf(b *testing.B, programs string) *fixture {
	b.Helper()
	r := installation.Start(b, env, installation.Options{Programs: programs})
	client := connect.RedisOf(config.Redis{Addrs: []string{r.Redis.Addr()}})
	b.Cleanup(func() { _ = client.Close() })
	return &fixture{Installation: r, b: b, client: client, api: r.APIs[0].Addr}
}

func (f *fixture) redisCalls() int64 { return installation.RedisCalls(f.b, f.client) }

// sale exposes a sale and returns its goods id.
func (f *fixture) sale(units int64) string { return f.PutUp(f.b, units, 1) }

// soldOut exposes a sale of one unit and sells it.
func (f *fixture) soldOut() string {
	f.b.Helper()
	goods := f.sale(1)
	f.buy(goods, serial.Add(1))
	return goods
}

// buy buys a unit and waits until the order is written.
func (f *fixture) buy(goods string, id int64) (orderSn string) {
	f.b.Helper()
	c := f.Buyer(f.b, id)
	c.Token = f.token(id)
	one := buyer.Buyer{Client: c, ID: id, GoodsID: goods, Quantity: 1, Patience: time.Minute}
	result := must.Get(one.Buy(f.b.Context()))(f.b)
	require.Equal(f.b, buyer.Won, result.Outcome)
	return result.OrderSn
}

// token returns the token of a buyer with a name and a phone number, which each order contains.
func (f *fixture) token(buyer int64) string {
	f.b.Helper()
	return must.Get(f.BuyerToken(buyer))(f.b)
}

// pathRequests returns requests for a path, each of a new buyer. Each has its number, from 1, as
// its request id.
func (f *fixture) pathRequests(goods string, n int, buyer func() int64) [][]byte {
	f.b.Helper()
	requests := make([][]byte, n)
	for i := range requests {
		id := fmt.Sprintf("X-Request-ID: %d\r\n", i+1)
		requests[i] = postAs(id, "/randomPath?goodsId="+goods, f.token(buyer()))
	}
	return requests
}

// inOrder and scattered return the ids of new buyers. Ascending ids are the cheapest for a table.
// Scattered ids are like those of real buyers.
func inOrder() int64 { return serial.Add(1) }

func scattered() int64 {
	return serial.Add(1) * 0x9E3779B1 & (1<<31 - 1) // an odd factor: no number repeats
}

// purchases returns the requests of n new buyers, each with a path of the API at an address.
func (f *fixture) purchases(addr, goods string, n int, buyer func() int64) [][]byte {
	f.b.Helper()
	asked, purchases := f.pathRequests(goods, n, buyer), make([][]byte, n)
	crowd(f.b, addr, connections, n, func(c *client, i int) error {
		status, body, err := c.talk(asked[i])
		if err == nil {
			purchases[i], err = purchaseOf(asked[i], status, body)
		}
		return err
	})
	return purchases
}

// ordered is an order of a buyer, with the requests that its buyer may send.
type ordered struct{ query, pay, cancel, events []byte }

// bought buys an order for each of n buyers and waits until all are written.
func (f *fixture) bought(goods string, n int) []ordered {
	f.b.Helper()
	purchases, orders := f.purchases(f.api, goods, n, inOrder), make([]ordered, n)
	crowd(f.b, f.api, connections, n, func(c *client, i int) error {
		status, body, err := c.talk(purchases[i])
		_, rest, _ := strings.Cut(string(purchases[i]), "Bearer ")
		token, _, _ := strings.Cut(rest, "\r\n")
		_, rest, found := strings.Cut(string(body), `"orderSn":"`)
		sn, _, _ := strings.Cut(rest, `"`)
		if err == nil && !found {
			err = fmt.Errorf("status %d: %s", status, body)
		}
		target := "/orders/" + sn
		orders[i] = ordered{
			get(target, token), post(target+"/pay", token), post(target+"/cancel", token),
			get(target+"/events", token),
		}
		return err
	})
	f.written(goods)
	return orders
}

// written waits until all orders of a goods are in the database, so that the work of one round does
// not burden the next. It returns the number of units that were bought in all.
func (f *fixture) written(goods string) int {
	f.b.Helper()
	return int(f.Drained(f.b, goods, time.Minute).Sold)
}

// answerOf returns the API's answer to a buyer's request, header and body.
func (f *fixture) answerOf(method, target string, buyer int64) (http.Header, string) {
	f.b.Helper()
	req := must.Get(http.NewRequestWithContext(f.b.Context(), method, "http://"+f.api+target,
		nil))(f.b)
	req.Header.Set("Authorization", "Bearer "+f.token(buyer))
	resp := must.Get(http.DefaultClient.Do(req))(f.b)
	defer resp.Body.Close()
	body := must.Get(io.ReadAll(resp.Body))(f.b)
	for _, own := range []string{"Date", "Content-Length", "Content-Type"} { // the server's own
		resp.Header.Del(own)
	}
	return resp.Header, string(body)
}
