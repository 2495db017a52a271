package buyer

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/http"
	"time"

	"flashsale.dev/seckill/internal/loadgen/apiclient"
)

// The steps of a thief: each must be refused.
const (
	StepReplay Step = "replay" // buy with another buyer's path
	StepForge  Step = "forge"  // buy with an invented path
	StepSpy    Step = "spy"    // look at another's order
	StepSpoil  Step = "spoil"  // cancel another's order
	StepInvent Step = "invent" // look at an order that does not exist
)

// Thief is a buyer, with a good token, who wants what is others'.
type Thief struct {
	apiclient.Client
	ID      int64
	GoodsID string
	Loot    *Loot
	Due     time.Time // when it meant to begin, as Buyer's
	Saw     func(Call)
}

// Rob tries everything once and tells what was not refused, a line for each. It asks for nothing twice, and what
// could not be asked or answered is no breach.
func (r Thief) Rob(ctx context.Context) (breaches []string) {
	for _, try := range r.tries() {
		if ctx.Err() != nil {
			return breaches
		}
		meant := time.Now()
		if !r.Due.IsZero() {
			meant, r.Due = r.Due, time.Time{}
		}
		a, err := r.Call(ctx, try.method, try.path, nil)
		if r.Saw != nil {
			r.Saw(Call{Step: try.step, Answer: a, Err: err, Took: time.Since(meant)})
		}
		if err == nil && a.Status < 400 {
			breaches = append(breaches, fmt.Sprintf("buyer %d: %s: %s %s was answered %d %s", r.ID, try.step, try.method, try.path, a.Status, a.Reason))
		}
	}
	return breaches
}

type try struct {
	step         Step
	method, path string
}

func (r Thief) tries() []try {
	buy := func(path string) string { return "/" + path + "/decrStock?goodsId=" + r.GoodsID }
	forged := make([]byte, 16)
	_, _ = rand.Read(forged) // never fails (crypto/rand)
	list := []try{
		{StepForge, http.MethodPost, buy(hex.EncodeToString(forged))},
		{StepInvent, http.MethodGet, "/orders/" + rand.Text()},
	}
	path, orderSn := r.Loot.pick(r.ID, int(forged[0]))
	if path != "" {
		list = append(list, try{StepReplay, http.MethodPost, buy(path)})
	}
	if orderSn != "" {
		list = append(list, try{StepSpy, http.MethodGet, "/orders/" + orderSn},
			try{StepSpoil, http.MethodPost, "/orders/" + orderSn + "/cancel"})
	}
	return list
}
