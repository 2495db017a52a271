package loadgen

import (
	"context"
	"math/rand/v2"
	"time"

	"flashsale.dev/seckill/internal/loadgen/apiclient"
	"flashsale.dev/seckill/internal/loadgen/buyer"
)

// Kind is a buyer's behaviour.
type Kind string

// The kinds of buyers.
const (
	Polite Kind = "polite" // obeys every answer and every Retry-After
	// Impatient buyers send three purchases at once, wait at most 100 ms, and buy a second time.
	Impatient Kind = "impatient"
	Hostile   Kind = "hostile" // replays paths of others, invents paths and order numbers
)

// kind draws the kind of buyer i; the same seed gives the same kinds.
func (p Plan) kind(i int) Kind {
	draw := float64(rand.NewPCG(p.Seed, uint64(i)).Uint64()>>11) / (1 << 53)
	switch {
	case draw < p.Hostile:
		return Hostile
	case draw < p.Hostile+p.Impatient:
		return Impatient
	default:
		return Polite
	}
}

// playBuyer plays buyer i, which was due at the given time.
func (r *runner) playBuyer(ctx context.Context, i int, due time.Time) {
	id, kind := r.FirstID+int64(i), r.kind(i)
	r.recorder.addArrival(time.Since(due))
	token, err := r.Token(id)
	if err != nil {
		r.recorder.addBuyer(kind, buyer.Result{BuyerID: id}, err)
		return
	}
	b := buyer.Buyer{
		Client: apiclient.Client{Base: r.Bases[i%len(r.Bases)], Token: token, HTTP: r.HTTP},
		ID:     id, GoodsID: r.GoodsID, Quantity: r.Quantity, Patience: r.Patience, Due: due,
		RetryErrors: true, Bases: r.Bases, NotStartedRetry: 50 * time.Millisecond,
		OnCall: r.recorder.addCall, OnAccepted: r.recorder.addAccepted,
		OnPath: func(path string) { r.captured.AddPath(id, path) },
	}
	switch kind {
	case Hostile:
		r.recorder.addHostile(b.Attack(ctx, r.captured))
		return
	case Impatient:
		b.ParallelRequests, b.MaxRetryWait, b.BuysAgain = 3, 100*time.Millisecond, true
	case Polite:
	}
	result, err := b.Buy(ctx)
	if result.OrderSn != "" {
		r.captured.AddOrder(id, result.OrderSn)
	}
	r.recorder.addBuyer(kind, result, err)
}
