package e2e

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/loadgen/apiclient"
	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/must"
)

// codesServeOneBuyerEach prints ten single codes with seckillctl and lets five buyers compete for
// each, over both APIs. Ten buy, one for each code. Each winner keeps the code after a cancel.
func codesServeOneBuyerEach(t *testing.T, r *installation.Installation) {
	const codeCount, rivals = 10, 5
	now, merchant := time.Now().UTC(), r.Merchant(t)
	goods := must.Get(merchant.PutUp(t.Context(), apiclient.NewSale{
		Title: "for members", Price: 1999, Stock: 100, AccessCode: "single",
		StartAt: now.Add(-time.Minute), EndAt: now.Add(time.Hour),
	}))(t)
	out := must.Get(installation.Try(t, "seckillctl",
		[]string{"SECKILL_JWT_SECRET=" + installation.Secret}, "codes", goods, "--kind", "single",
		"--count", "10", "--expires", now.Add(2*time.Hour).Format(time.RFC3339)))(t)
	codes := strings.Fields(out)
	require.Len(t, codes, codeCount)

	var all sync.WaitGroup
	var reasons [codeCount * rivals]string
	for i := range reasons {
		buyer := r.Buyer(t, int64(1000+i))
		buyer.Base = r.Base(i % 2)
		all.Go(func() {
			for ended := time.Now().Add(time.Minute); time.Now().Before(ended); {
				answer, err := buyer.Call(t.Context(), "POST", "/randomPath?goodsId="+goods,
					map[string]any{"code": codes[i/rivals]})
				if err == nil && answer.Status != 429 && answer.Status != 503 { // a busy machine
					reasons[i] = answer.Reason
					return
				}
			}
		})
	}
	all.Wait()
	for i, code := range codes {
		var winners []int64
		for rival := range rivals {
			if reason := reasons[i*rivals+rival]; reason == "OK" {
				winners = append(winners, int64(1000+i*rivals+rival))
			} else {
				require.Equal(t, "CODE_USED", reason)
			}
		}
		require.Len(t, winners, 1, code)
		sn := buysWith(t, r, winners[0], goods, code)
		buyer := r.Buyer(t, winners[0])
		require.Eventually(t, func() bool {
			return buyer.Do(t.Context(), "POST", "/orders/"+sn+"/cancel", nil, nil) == nil
		}, time.Minute, 10*time.Millisecond, "the order is never written")
		require.NotEqual(t, sn, buysWith(t, r, winners[0], goods, code))
	}
	ledger := r.Drained(t, goods, time.Minute)
	require.EqualValues(t, codeCount, ledger.Sold)
}

// buysWith purchases a unit with an access code and returns the order number.
func buysWith(t *testing.T, r *installation.Installation, id int64, goods, code string) string {
	buyer := r.Buyer(t, id)
	var path struct{ RandomPath string }
	var queued struct{ OrderSn string }
	require.Eventually(t, func() bool { // a busy machine may need more than one deadline
		return buyer.Do(t.Context(), "POST", "/randomPath?goodsId="+goods,
			map[string]any{"code": code}, &path) == nil &&
			buyer.Do(t.Context(), "POST", "/"+path.RandomPath+"/decrStock?goodsId="+goods, nil,
				&queued) == nil
	}, time.Minute, 10*time.Millisecond, "the purchase was never confirmed")
	return queued.OrderSn
}
