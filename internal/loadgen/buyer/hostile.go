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

// The steps of a hostile buyer. The API must refuse each.
const (
	StepReplay      Step = "replay"       // buy with another buyer's path
	StepForge       Step = "forge"        // buy with an invented path
	StepReadOther   Step = "read-other"   // read another buyer's order
	StepCancelOther Step = "cancel-other" // cancel another buyer's order
	StepReadUnknown Step = "read-unknown" // read an order that does not exist
)

// HostileBuyer holds a valid token and attacks the paths and orders of other buyers.
type HostileBuyer struct {
	apiclient.Client
	ID       int64
	GoodsID  string
	Captured *Captured
	Due      time.Time // planned start, as in Buyer
	OnCall   func(Call)
}

// Attack makes each attempt once and returns one line for each that was not refused. A call
// without an answer is not a breach.
func (h HostileBuyer) Attack(ctx context.Context) (breaches []string) {
	for _, attempt := range h.attempts() {
		if ctx.Err() != nil {
			return breaches
		}
		planned := time.Now()
		if !h.Due.IsZero() {
			planned, h.Due = h.Due, time.Time{}
		}
		a, err := h.Call(ctx, attempt.method, attempt.path, nil)
		if h.OnCall != nil {
			h.OnCall(Call{Step: attempt.step, Answer: a, Err: err, Took: time.Since(planned)})
		}
		if err == nil && a.Status < 400 {
			breaches = append(breaches, fmt.Sprintf("buyer %d: %s: %s %s answered %d %s",
				h.ID, attempt.step, attempt.method, attempt.path, a.Status, a.Reason))
		}
	}
	return breaches
}

// attempt is one hostile call.
type attempt struct {
	step         Step
	method, path string
}

// attempts lists those that are possible: attacks on others need a captured path or order.
func (h HostileBuyer) attempts() []attempt {
	buy := func(path string) string { return "/" + path + "/decrStock?goodsId=" + h.GoodsID }
	forged := make([]byte, 16)
	_, _ = rand.Read(forged) // never fails (crypto/rand)
	list := []attempt{
		{StepForge, http.MethodPost, buy(hex.EncodeToString(forged))},
		{StepReadUnknown, http.MethodGet, "/orders/" + rand.Text()},
	}
	path, orderSn := h.Captured.ofOther(h.ID, int(forged[0]))
	if path != "" {
		list = append(list, attempt{StepReplay, http.MethodPost, buy(path)})
	}
	if orderSn != "" {
		list = append(list, attempt{StepReadOther, http.MethodGet, "/orders/" + orderSn},
			attempt{StepCancelOther, http.MethodPost, "/orders/" + orderSn + "/cancel"})
	}
	return list
}
