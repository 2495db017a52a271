package seen

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/loadgen/buyer"
	"flashsale.dev/seckill/internal/testenv"
	"flashsale.dev/seckill/test/rig"
)

var suite = testenv.NewSuite()

func TestMain(m *testing.M) { os.Exit(rig.Around(m, suite)) }

// rushOn sells a sale out to three times as many buyers.
func rushOn(t *testing.T, r *rig.Rig) (goods string) {
	t.Helper()
	goods = r.PutUp(t, 200, 1)
	p := buyer.Plan{GoodsID: goods, Buyers: 600, Concurrency: 50, Token: r.BuyerToken, RetryErrors: true}
	for i := range r.APIs {
		p.Bases = append(p.Bases, r.Base(i))
	}
	report, err := buyer.Run(t.Context(), p)
	require.NoError(t, err)
	require.Equal(t, 200, report.Count(buyer.Won))
	r.Drained(t, goods, time.Minute)
	return goods
}
