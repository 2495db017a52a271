package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/auth"
	"flashsale.dev/seckill/internal/httpapi/spectest"
	"flashsale.dev/seckill/internal/loadgen/apiclient"
	"flashsale.dev/seckill/internal/loadgen/buyer"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/test/rig"
)

func TestTheDemoSellsExactlyItsUnits(t *testing.T) {
	out := rig.Run(t, "standalone", nil, "-demo", "-exit", "-addr", "127.0.0.1:0", "-data", t.TempDir())
	require.Contains(t, out, "won                               500  (500 units, 500 buyers)")
	require.Contains(t, out, "total 500 = available 0 + pending 0 + sold 500; database: stock 0, active 500; balanced: true")
	require.Regexp(t, `server faults \(5xx\) +0\n`, out)
}

// standalone is one running, its merchant and what signs its buyers' tokens.
type standalone struct {
	*rig.Program
	data   string
	tokens *auth.Tokens
}

func startStandalone(t *testing.T, data string) standalone {
	t.Helper()
	p := rig.StartProgram(t, "standalone", "SECKILL_HTTP_ADDR", nil, "-data", data)
	secret, err := os.ReadFile(filepath.Join(data, "jwt-secret"))
	require.NoError(t, err)
	tokens, err := auth.New(secret, 0, time.Now)
	require.NoError(t, err)
	return standalone{Program: p, data: data, tokens: tokens}
}

func (s standalone) as(t *testing.T, role seckill.Role, id int64) apiclient.Client {
	t.Helper()
	token, err := s.tokens.Sign(seckill.Actor{ID: id, Role: role}, time.Hour)
	require.NoError(t, err)
	return apiclient.Client{Base: "http://" + s.Addr, Token: token, HTTP: spectest.Client(t, apiclient.NewHTTP(4))}
}

func (s standalone) buyerToken(id int64) (string, error) {
	return s.tokens.Sign(seckill.Actor{ID: id, Role: seckill.Buyer}, time.Hour)
}

// TestOrdersSurviveAKillInTheMiddleOfARush kills standalone with -9 while it sells, starts it again on the same
// directory and lets the rush go on: whoever was told 202 has an order, and exactly the stock is sold.
func TestOrdersSurviveAKillInTheMiddleOfARush(t *testing.T) {
	const units = 300
	s := startStandalone(t, t.TempDir())
	now := time.Now().UTC()
	goods, err := s.as(t, seckill.Merchant, 1).PutUp(t.Context(), apiclient.NewSale{
		Title: "a kettle", Price: 5, Stock: units, StartAt: now.Add(-time.Minute), EndAt: now.Add(time.Hour),
	})
	require.NoError(t, err)

	killed := make(chan struct{})
	done := 0
	first, _ := buyer.Run(t.Context(), buyer.Plan{ // buyers lose their connection: that is the point
		Base: "http://" + s.Addr, GoodsID: goods, Buyers: 400, Concurrency: 20, Token: s.buyerToken, FirstID: 1,
		OnDone: func() {
			if done++; done == 100 {
				_ = s.Kill()
				close(killed)
			}
		},
	})
	<-killed
	promised := 0
	for _, told := range first.Results {
		if told.OrderSn != "" {
			promised++
		}
	}
	require.Positive(t, promised)
	require.Less(t, promised, units, "nothing was left to sell when it was killed")

	s.Start(t)
	for _, told := range first.Results {
		if told.OrderSn == "" {
			continue
		}
		var o struct {
			Status string `json:"status"`
		}
		require.NoError(t, s.as(t, seckill.Buyer, told.BuyerID).Do(t.Context(), "GET", "/orders/"+told.OrderSn, nil, &o))
		require.Equal(t, "created", o.Status)
	}
	_, err = buyer.Run(t.Context(), buyer.Plan{
		Base: "http://" + s.Addr, GoodsID: goods, Buyers: 600, Concurrency: 50, Token: s.buyerToken, FirstID: 1000, Patience: 20 * time.Second,
	})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	l, err := s.as(t, seckill.Merchant, 1).Drained(ctx, goods)
	require.NoError(t, err)
	require.True(t, l.Balanced, "%+v", l)
	require.Equal(t, []int64{0, units, 0, units}, []int64{l.Available, l.Sold, l.Database.Stock, l.Database.Active})
	require.Greater(t, l.Epoch, int64(1))
}

func TestASecondStandaloneKeepsOutOfTheDirectory(t *testing.T) {
	s := startStandalone(t, t.TempDir())
	out, err := rig.Try(t, "standalone", nil, "-addr", "127.0.0.1:0", "-data", s.data)
	require.Error(t, err)
	require.Contains(t, out, "another process works on")
}

func TestEveryProgramExplainsItself(t *testing.T) {
	for _, name := range []string{"api", "order-consumer", "standalone", "seckillctl"} {
		out := rig.Run(t, name, nil, "-help")
		require.Contains(t, strings.ToLower(out), "usage", name)
		if name != "seckillctl" {
			require.Contains(t, out, "SECKILL_PAYMENT_TIMEOUT", name)
			require.Contains(t, out, "15m", name)
		}
	}
}

func TestSIGTERMEndsEveryProgramInOrder(t *testing.T) {
	r := rig.Start(t, suite, rig.Options{})
	s := startStandalone(t, t.TempDir())
	for _, p := range []*rig.Program{r.APIs[0], r.Consumers[0], s.Program} {
		require.NoError(t, p.Stop(), "%s", p.Log())
	}
}
