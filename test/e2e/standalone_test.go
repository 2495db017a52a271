package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/auth"
	"flashsale.dev/seckill/internal/loadgen/apiclient"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/apicheck"
	"flashsale.dev/seckill/internal/testing/buyers"
	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/must"
)

// standalone is a running process, its merchant, and the signer of its buyers' tokens.
type standalone struct {
	*installation.Program
	data   string
	tokens *auth.Tokens
}

func startStandalone(t *testing.T, data string) standalone {
	p := installation.StartProgram(t, "standalone", "SECKILL_HTTP_ADDR", nil, "-data", data)
	secret := must.Get(os.ReadFile(filepath.Join(data, "jwt-secret")))(t)
	tokens := must.Get(auth.New(secret, 0, time.Now))(t)
	return standalone{Program: p, data: data, tokens: tokens}
}

func (s standalone) as(t *testing.T, role seckill.Role, id int64) apiclient.Client {
	token := must.Get(s.tokens.Sign(seckill.Actor{ID: fmt.Sprint(id), Role: role}, time.Hour))(t)
	return apiclient.Client{
		Base: "http://" + s.Addr, Token: token, HTTP: apicheck.Client(t, apiclient.NewHTTP(4)),
	}
}

func (s standalone) buyerToken(id int64) (string, error) {
	return s.tokens.Sign(seckill.Actor{ID: fmt.Sprint(id), Role: seckill.Buyer}, time.Hour)
}

// TestStandalone_OrdersSurviveKillDuringRush kills standalone with SIGKILL while it sells, and
// restarts it on the same directory. The rush then continues. Every buyer that was answered 202 has
// an order, and exactly the stock is sold.
func TestStandalone_OrdersSurviveKillDuringRush(t *testing.T) {
	const units = 300
	s := startStandalone(t, t.TempDir())
	now := time.Now().UTC()
	goods := must.Get(s.as(t, seckill.Merchant, 1).PutUp(t.Context(), apiclient.NewSale{
		Title: "a kettle", Price: 5, Stock: units, StartAt: now.Add(-time.Minute),
		EndAt: now.Add(time.Hour),
	}))(t)

	killed := make(chan struct{})
	done := 0
	// The buyers lose their connections because of the kill.
	first, _ := buyers.Run(t.Context(), buyers.Plan{
		Base: "http://" + s.Addr, GoodsID: goods, Buyers: 400, Concurrency: 20, Token: s.buyerToken,
		FirstID: 1,
		OnDone: func() {
			if done++; done == 100 {
				_ = s.Kill()
				close(killed)
			}
		},
	})
	<-killed
	promised := 0
	for _, result := range first.Results {
		if result.OrderSn != "" {
			promised++
		}
	}
	require.Positive(t, promised)
	require.Less(t, promised, units, "the sale was sold out before the kill")

	s.Start(t)
	for _, result := range first.Results {
		if result.OrderSn == "" {
			continue
		}
		var o struct {
			Status string `json:"status"`
		}
		require.NoError(t, s.as(t, seckill.Buyer, result.BuyerID).Do(t.Context(), "GET",
			"/orders/"+result.OrderSn, nil, &o))
		require.Equal(t, "created", o.Status)
	}
	must.Get(buyers.Run(t.Context(), buyers.Plan{
		Base: "http://" + s.Addr, GoodsID: goods, Buyers: 600, Concurrency: 50, Token: s.buyerToken,
		FirstID: 1000, Patience: 20 * time.Second,
	}))(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	l := must.Get(s.as(t, seckill.Merchant, 1).Drained(ctx, goods))(t)
	require.True(t, l.Balanced, "%+v", l)
	require.Equal(t, []int64{0, units, 0, units},
		[]int64{l.Available, l.Sold, l.Database.Stock, l.Database.Active})
	require.Greater(t, l.Epoch, int64(1))
	require.Positive(t, s.Metric(t, `seckill_reservations_total{outcome="taken"}`))
	require.Positive(t, s.Metric(t, `seckill_orders_written_total{outcome="created"}`))
}

// TestStandalone_RefusesSecondProcessAndEndsOnSIGTERM starts a second process on the directory of a
// running one. The first must then exit without an error on SIGTERM.
func TestStandalone_RefusesSecondProcessAndEndsOnSIGTERM(t *testing.T) {
	s := startStandalone(t, t.TempDir())
	out, err := installation.Try(t, "standalone", nil, "-addr", "127.0.0.1:0", "-data", s.data)
	require.Error(t, err)
	require.Contains(t, out, "another process uses")
	require.NoError(t, s.Stop(), "%s", s.Log())
}

func TestPrograms_PrintUsageAndVersion(t *testing.T) {
	for _, name := range []string{"api", "order-consumer", "standalone", "seckillctl"} {
		out := installation.Run(t, name, nil, "-help")
		require.Contains(t, strings.ToLower(out), "usage", name)
		require.Regexp(t, `^`+name+` version .+, commit .+, of .+`,
			installation.Run(t, name, nil, "-version"))
		if name != "seckillctl" {
			require.Contains(t, out, "SECKILL_PAYMENT_TIMEOUT", name)
			require.Contains(t, out, "15m", name)
		}
	}
}
