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
	"flashsale.dev/seckill/internal/ordersn"
	"flashsale.dev/seckill/internal/redisstore"
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
	store  *redisstore.Store
	api    string // the API's address
}

func newFixture(b *testing.B) *fixture {
	b.Helper()
	r := installation.Start(b, env, installation.Options{})
	client := connect.RedisOf(config.Redis{Addrs: []string{r.Redis.Addr()}})
	b.Cleanup(func() { _ = client.Close() })
	return &fixture{
		Installation: r, b: b, client: client, api: r.APIs[0].Addr,
		store: redisstore.New(client, redisstore.Options{}),
	}
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

// pathRequests returns requests for a path, each of a new buyer.
func (f *fixture) pathRequests(goods string, n int) (requests [][]byte, tokens []string) {
	f.b.Helper()
	for range n {
		t := f.token(serial.Add(1))
		requests = append(requests, post("/randomPath?goodsId="+goods, t))
		tokens = append(tokens, t)
	}
	return requests, tokens
}

// inOrder and scattered return the ids of new buyers. Ascending ids are the cheapest for a table.
// Scattered ids are like those of real buyers.
func inOrder() int64 { return serial.Add(1) }

func scattered() int64 {
	return serial.Add(1) * 0x9E3779B1 & (1<<31 - 1) // an odd factor: no number repeats
}

// purchases returns the requests of n new buyers, each with a path.
func (f *fixture) purchases(goods string, n int, buyer func() int64) [][]byte {
	f.b.Helper()
	keys := ordersn.NewKeys(must.Get(config.Auth{JWTSecret: secret}.OrderKeys())(f.b)...)
	goodsID, requests := installation.Number(f.b, goods), make([][]byte, n)
	for i := range requests {
		id := buyer()
		path := keys.Issue(goodsID, id, time.Now()).Path()
		requests[i] = post(fmt.Sprintf("/%s/decrStock?goodsId=%s", path, goods), f.token(id))
	}
	return requests
}

// bought buys an order for each of n buyers and waits until all are written. It returns requests
// that query and pay them.
func (f *fixture) bought(goods string, n int) (queries, pays [][]byte) {
	f.b.Helper()
	purchases := f.purchases(goods, n, inOrder)
	queries, pays = make([][]byte, n), make([][]byte, n)
	crowd(f.b, f.api, connections, n, func(c *client, i int) error {
		status, body, err := c.talk(purchases[i])
		_, rest, _ := strings.Cut(string(purchases[i]), "Bearer ")
		token, _, _ := strings.Cut(rest, "\r\n")
		_, rest, found := strings.Cut(string(body), `"orderSn":"`)
		sn, _, _ := strings.Cut(rest, `"`)
		if err == nil && !found {
			err = fmt.Errorf("status %d: %s", status, body)
		}
		queries[i] = get("/orders/"+sn, token)
		pays[i] = post("/orders/"+sn+"/pay", token)
		return err
	})
	f.written(goods)
	return queries, pays
}

// written waits until all orders of a goods are in the database, so that the work of one round does
// not burden the next.
func (f *fixture) written(goods string) {
	f.b.Helper()
	require.Eventually(f.b, func() bool {
		v, err := f.store.View(f.b.Context(), installation.Number(f.b, goods))
		return err == nil && v.Pending == 0
	}, time.Minute, 10*time.Millisecond, "orders stay pending")
}

// answerOf returns the API's answer to a request for a path, header and body.
func (f *fixture) answerOf(goods string) (http.Header, string) {
	f.b.Helper()
	url := "http://" + f.api + "/randomPath?goodsId=" + goods
	req := must.Get(http.NewRequestWithContext(f.b.Context(), http.MethodPost, url, nil))(f.b)
	req.Header.Set("Authorization", "Bearer "+f.token(1))
	resp := must.Get(http.DefaultClient.Do(req))(f.b)
	defer resp.Body.Close()
	body := must.Get(io.ReadAll(resp.Body))(f.b)
	for _, own := range []string{"Date", "Content-Length", "Content-Type"} { // the server's own
		resp.Header.Del(own)
	}
	return resp.Header, string(body)
}
