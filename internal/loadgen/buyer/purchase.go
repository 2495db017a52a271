package buyer

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"flashsale.dev/seckill/internal/loadgen/apiclient"
)

// buyParallel sends ParallelRequests purchases with one path. One 202 among the answers wins.
func (b Buyer) buyParallel(
	ctx context.Context, t *Result, until time.Time, path string,
) (apiclient.Answer, error) {
	n := max(1, b.ParallelRequests) - 1
	others, answers := make([]Result, n), make([]apiclient.Answer, n)
	var g errgroup.Group
	for i := range others {
		g.Go(func() (err error) {
			answers[i], err = b.buyWith(ctx, &others[i], until, path)
			return err
		})
	}
	a, err := b.buyWith(ctx, t, until, path)
	other := g.Wait()
	for i := range others {
		t.add(others[i])
		if answers[i].Status == http.StatusAccepted && a.Status != http.StatusAccepted {
			a, err = answers[i], nil
		}
	}
	if err == nil && a.Status != http.StatusAccepted {
		err = other
	}
	return a, err
}

// buyWith buys with a path and records the order number of a 202. A failed attempt that met an
// error or a 503 leaves the result uncertain: the API may have accepted a call whose answer was lost.
func (b Buyer) buyWith(
	ctx context.Context, t *Result, until time.Time, path string,
) (apiclient.Answer, error) {
	sent, errorsBefore := time.Now(), t.errorCount()
	target := fmt.Sprintf("/%s/decrStock?goodsId=%s&decrStock=%d", path, b.GoodsID, b.Quantity)
	a, err := b.callWithRetry(ctx, t, until, StepBuy, target)
	if err != nil || a.Status != http.StatusAccepted {
		t.Uncertain = t.Uncertain || err != nil || a.Status == 0 || t.errorCount() > errorsBefore
		return a, err
	}
	var queued struct {
		OrderSn string `json:"orderSn"`
	}
	err = a.Into(&queued)
	t.Accepted = append(t.Accepted, Accepted{
		Path: path, OrderSn: queued.OrderSn, Sent: sent, Received: time.Now(),
	})
	return a, err
}
