package bench

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/app/connect"
	"flashsale.dev/seckill/internal/config"
	"flashsale.dev/seckill/internal/ordersn"
	"flashsale.dev/seckill/internal/redisstore"
	"flashsale.dev/seckill/internal/testing/installation"
)

const (
	secret = installation.Secret
	// connections of the loader: enough that requests meet, few enough that a laptop bears them.
	connections = 128
	// refusedEach and boughtEach are the requests of one lap.
	refusedEach = 10_000
	boughtEach  = 4_000
	// shards is what the programs have where nobody says otherwise (SECKILL_ORDER_SHARDS).
	shards = 4
)

// BenchmarkSoldOut is the answer that nearly everybody gets in a rush, out of cmd/api over loopback, beside bare gin that checks
// the same tokens the same way and writes the same bytes. The processor time is the answering process'.
func BenchmarkSoldOut(b *testing.B) {
	r := installation.Start(b, env, installation.Options{})
	goods := r.PutUp(b, 1, 1)
	sellOut(b, r, goods)
	target := "/randomPath?goodsId=" + goods
	requests := make([][]byte, connections)
	for i := range requests {
		requests[i] = post(target, token(b, r, serial.Add(1)))
	}
	header, body := answerOf(b, "http://"+r.APIs[0].Addr+target, token(b, r, 1))
	floor, floorPid := startFloor(b, spec(r, goods, header, body))
	client := connect.Redis([]string{r.Redis.Addr()}, "")
	b.Cleanup(func() { _ = client.Close() })
	asked, before := 0, installation.RedisCalls(b, client)
	refuse := func(addr string, pid int) func() lap {
		cpu := processorTime(pid)
		return func() lap {
			asked += refusedEach
			spent := cpu()
			took := play(b, addr, connections, refusedEach, http.StatusConflict, func(i int) []byte { return requests[i%len(requests)] })
			return lap{refusedEach, took, cpu() - spent}
		}
	}
	ours := refuse(r.APIs[0].Addr, r.APIs[0].Pid())
	duel(b, "sold out, over HTTP", "answers",
		contestant{"ours", ours}, contestant{"bare gin, same token check and bytes", refuse(floor, floorPid)})
	b.ReportMetric(float64(installation.RedisCalls(b, client)-before)/float64(asked/2), "redis-calls/answer")
	profile(b, r.APIs[0], "sold-out", ours)
}

// BenchmarkAccepted is decrStock by buyers who have a path: each lap's purchases are all answered 202, with a confirmed message, while
// the consumer and the database work beside; and the same of the floor program, which asks nothing. The processor time is
// the answering process'.
func BenchmarkAccepted(b *testing.B) {
	r := installation.Start(b, env, installation.Options{})
	ours, bare := r.PutUp(b, 10_000_000, 1), r.PutUp(b, 10_000_000, 1)
	header, body := answerOf(b, "http://"+r.APIs[0].Addr+"/randomPath", token(b, r, 1)) // for its headers
	floor, floorPid := startFloor(b, spec(r, bare, header, body))
	client := connect.Redis([]string{r.Redis.Addr()}, "")
	b.Cleanup(func() { _ = client.Close() })
	store := redisstore.New(client, redisstore.Options{})
	buy := func(goods, addr string, pid int) func() lap {
		cpu := processorTime(pid)
		return func() lap {
			requests := purchases(b, r, id(b, goods), boughtEach, inOrder)
			spent := cpu()
			took := play(b, addr, connections, len(requests), http.StatusAccepted, func(i int) []byte { return requests[i] })
			used := cpu() - spent
			written(b, store, id(b, goods))
			return lap{len(requests), took, used}
		}
	}
	buyOurs := buy(ours, r.APIs[0].Addr, r.APIs[0].Pid())
	duel(b, "accepted purchases (202), over HTTP", "purchases",
		contestant{"ours", buyOurs},
		contestant{"bare gin, five bare commands, one message per group", buy(bare, floor, floorPid)})
	profile(b, r.APIs[0], "accepted", buyOurs)
}

// inOrder and scattered are buyers who have never bought: by number one after the other, as a table likes them best, or in no
// order, as they come.
func inOrder() int64   { return serial.Add(1) }
func scattered() int64 { return serial.Add(1) * 0x9E3779B1 & (1<<31 - 1) } // an odd factor: no number comes twice

// purchases of at least n buyers, each with a path.
func purchases(b *testing.B, r *installation.Installation, goodsID int64, n int, buyer func() int64) [][]byte {
	b.Helper()
	secrets, err := config.Auth{JWTSecret: secret}.OrderKeys()
	require.NoError(b, err)
	keys := ordersn.NewKeys(secrets...)
	requests := make([][]byte, 0, n)
	for len(requests) < n {
		n := buyer()
		path := keys.Issue(goodsID, n, time.Now()).Path()
		requests = append(requests, post(fmt.Sprintf("/%s/decrStock?goodsId=%d", path, goodsID), token(b, r, n)))
	}
	return requests
}

// written waits until all orders of a goods are in the database, so that one lap's work does not burden the next.
func written(b *testing.B, store *redisstore.Store, goodsID int64) {
	b.Helper()
	require.Eventually(b, func() bool {
		v, err := store.View(b.Context(), goodsID)
		return err == nil && v.Pending == 0
	}, time.Minute, 10*time.Millisecond, "orders stay pending")
}

func sellOut(b *testing.B, r *installation.Installation, goods string) {
	b.Helper()
	buyer := r.Buyer(b, serial.Add(1))
	var path struct {
		RandomPath string `json:"randomPath"`
	}
	require.NoError(b, buyer.Do(b.Context(), http.MethodPost, "/randomPath?goodsId="+goods, nil, &path))
	var placed struct {
		OrderSn string `json:"orderSn"`
	}
	require.NoError(b, buyer.Do(b.Context(), http.MethodPost, "/"+path.RandomPath+"/decrStock?goodsId="+goods, nil, &placed))
}

// answerOf is what the API says, header and body.
func answerOf(b *testing.B, url, token string) (http.Header, string) {
	b.Helper()
	req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, url, http.NoBody)
	require.NoError(b, err)
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(b, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(b, err)
	for _, own := range []string{"Date", "Content-Length", "Content-Type"} { // the server writes these itself
		resp.Header.Del(own)
	}
	return resp.Header, string(body)
}

func spec(r *installation.Installation, goods string, header http.Header, body string) floorSpec {
	n, _ := strconv.ParseInt(goods, 10, 64) // of our own making
	return floorSpec{Redis: r.Redis.Addr(), AMQP: r.AMQP, Shards: shards, GoodsID: n, SoldOut: header, SoldOutBody: body}
}

func token(b *testing.B, r *installation.Installation, buyer int64) string {
	b.Helper()
	text, err := r.BuyerToken(buyer)
	require.NoError(b, err)
	return text
}

func id(b *testing.B, goods string) int64 {
	b.Helper()
	n, err := strconv.ParseInt(goods, 10, 64)
	require.NoError(b, err)
	return n
}
