package loadgen

import (
	"context"
	"math/rand/v2"
	"time"

	"flashsale.dev/seckill/internal/loadgen/apiclient"
	"flashsale.dev/seckill/internal/loadgen/buyer"
)

// Kind is what a buyer is like.
type Kind string

// The kinds of buyers.
const (
	Polite    Kind = "polite"    // does as it is told and waits as long as it is told
	Impatient Kind = "impatient" // clicks three times at once, waits no longer than 100 ms, and wants more when it has
	Hostile   Kind = "hostile"   // replays others' paths, invents paths and order numbers
)

// What impatient buyers do, and how soon everybody asks again who came before the sale was open.
const (
	clicks = 3
	hurry  = 100 * time.Millisecond
	early  = 50 * time.Millisecond
)

// kind of the i-th buyer: the same for the same seed.
func (p Plan) kind(i int) Kind {
	dice := float64(rand.NewPCG(p.Seed, uint64(i)).Uint64()>>11) / (1 << 53)
	switch {
	case dice < p.Hostile:
		return Hostile
	case dice < p.Hostile+p.Impatient:
		return Impatient
	default:
		return Polite
	}
}

// one plays the i-th buyer, who was due at a moment.
func (r *runner) one(ctx context.Context, i int, due time.Time) {
	id, kind := r.FirstID+int64(i), r.kind(i)
	r.rec.arrived(time.Since(due))
	token, err := r.Token(id)
	if err != nil {
		r.rec.departed(kind, buyer.Told{BuyerID: id}, err)
		return
	}
	c := apiclient.Client{Base: r.Bases[i%len(r.Bases)], Token: token, HTTP: r.HTTP}
	if kind == Hostile {
		thief := buyer.Thief{Client: c, ID: id, GoodsID: r.GoodsID, Loot: r.loot, Due: due, Saw: r.rec.saw}
		r.rec.robbed(thief.Rob(ctx))
		return
	}
	b := r.buyer(c, id, kind, due)
	told, err := b.Buy(ctx)
	if told.OrderSn != "" {
		r.loot.Order(id, told.OrderSn)
	}
	r.rec.departed(kind, told, err)
}

func (r *runner) buyer(c apiclient.Client, id int64, kind Kind, due time.Time) buyer.Buyer {
	b := buyer.Buyer{
		Client: c, ID: id, GoodsID: r.GoodsID, Quantity: r.Quantity, Patience: r.Patience, Stubborn: true, Bases: r.Bases,
		Early: early, Due: due, Saw: r.rec.saw, Won: r.rec.won, Path: func(path string) { r.loot.Path(id, path) },
	}
	if kind == Impatient {
		b.Clicks, b.Hurry, b.Greedy = clicks, hurry, true
	}
	return b
}
