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
	StepReplay      Step = "replay" // buy with another buyer's path
	StepForge       Step = "forge"  // buy with an invented path
	StepReadOther   Step = "spy"    // look at another's order
	StepCancelOther Step = "spoil"  // cancel another's order
	StepReadUnknown Step = "invent" // look at an order that does not exist
)

// HostileBuyer is a buyer, with a good token, who wants what is others'.
type HostileBuyer struct {
	apiclient.Client
	ID       int64
	GoodsID  string
	Captured *Captured
	Due      time.Time // when it meant to begin, as Buyer's
	OnCall   func(Call)
}

// Rob tries everything once and tells what was not refused, a line for each. It asks for nothing twice, and what
// could not be asked or answered is no breach.
func (r HostileBuyer) Attack(ctx context.Context) (breaches []string) {
	for _, try := range r.attempts() {
		if ctx.Err() != nil {
			return breaches
		}
		meant := time.Now()
		if !r.Due.IsZero() {
			meant, r.Due = r.Due, time.Time{}
		}
		a, err := r.Call(ctx, try.method, try.path, nil)
		if r.OnCall != nil {
			r.OnCall(Call{Step: try.step, Answer: a, Err: err, Took: time.Since(meant)})
		}
		if err == nil && a.Status < 400 {
			breaches = append(breaches, fmt.Sprintf("buyer %d: %s: %s %s was answered %d %s", r.ID, try.step, try.method, try.path, a.Status, a.Reason))
		}
	}
	return breaches
}

type attempt struct {
	step         Step
	method, path string
}

func (r HostileBuyer) attempts() []attempt {
	buy := func(path string) string { return "/" + path + "/decrStock?goodsId=" + r.GoodsID }
	forged := make([]byte, 16)
	_, _ = rand.Read(forged) // never fails (crypto/rand)
	list := []attempt{
		{StepForge, http.MethodPost, buy(hex.EncodeToString(forged))},
		{StepReadUnknown, http.MethodGet, "/orders/" + rand.Text()},
	}
	path, orderSn := r.Captured.ofOther(r.ID, int(forged[0]))
	if path != "" {
		list = append(list, attempt{StepReplay, http.MethodPost, buy(path)})
	}
	if orderSn != "" {
		list = append(list, attempt{StepReadOther, http.MethodGet, "/orders/" + orderSn},
			attempt{StepCancelOther, http.MethodPost, "/orders/" + orderSn + "/cancel"})
	}
	return list
}
