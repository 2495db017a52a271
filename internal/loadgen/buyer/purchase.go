package buyer

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"flashsale.dev/seckill/internal/loadgen/apiclient"
	"golang.org/x/sync/errgroup"
)

// press asks to buy with a path, by as many clicks at once as the buyer makes. One 202 among the answers is a yes.
func (b Buyer) press(ctx context.Context, t *Told, until time.Time, path string) (apiclient.Answer, error) {
	others, answers := make([]Told, max(1, b.Clicks)-1), make([]apiclient.Answer, max(1, b.Clicks)-1)
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

// buyWith asks to buy with a path and keeps what a 202 says.
func (b Buyer) buyWith(ctx context.Context, t *Told, until time.Time, path string) (apiclient.Answer, error) {
	asked, trouble := time.Now(), t.Broken+t.Busy+t.Faults
	a, err := b.insist(ctx, t, until, StepBuy, fmt.Sprintf("/%s/decrStock?goodsId=%s&decrStock=%d", path, b.GoodsID, b.Quantity))
	if err != nil || a.Status != http.StatusAccepted {
		t.Unsure = t.Unsure || err != nil || a.Status == 0 || t.Broken+t.Busy+t.Faults > trouble
		return a, err
	}
	var queued struct {
		OrderSn string `json:"orderSn"`
	}
	err = a.Into(&queued)
	t.Heard = append(t.Heard, Heard{Path: path, OrderSn: queued.OrderSn, Asked: asked, At: time.Now()})
	return a, err
}
