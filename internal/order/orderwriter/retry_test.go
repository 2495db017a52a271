package orderwriter_test

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/ordersn"
)

// failing is a MySQL that fails for a while.
type failing struct {
	*queue
	until time.Time
}

func (f *failing) AddDeadLetter(ctx context.Context, d order.DeadLetter) error {
	if time.Now().Before(f.until) {
		return order.ErrTryAgain
	}
	return f.queue.AddDeadLetter(ctx, d)
}

// TestWriter_NamesTheSaleThatMySQLFails checks that an operator reads which sale the others of its
// queue wait for. MySQL's error of a locked row names none.
func TestWriter_NamesTheSaleThatMySQLFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{deliveries: make(chan order.Delivery)}
		c := q.consumer(0)
		var log bytes.Buffer
		c.Log = slog.New(slog.NewTextHandler(&log, nil))
		c.Keys = ordersn.NewKeys([]byte("a secret of at least 32 bytes, for tests"))
		c.Store = &failing{q, time.Now().Add(8 * time.Second)}
		stop := run(t, c)
		forged := []byte(`{"goodsId":"7","orders":[{"orderSn":"forged"}]}`)
		q.deliveries <- order.Delivery{Body: forged, Tag: 1}
		time.Sleep(20 * time.Second)
		stop()
		require.Len(t, q.batches, 1, "the message is acknowledged: %s", &log)
		require.Contains(t, log.String(), `operation="keep a dead letter" goods_id=7 attempt=`)
	})
}
