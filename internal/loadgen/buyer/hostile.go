package buyer

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/http"
)

// The steps of a hostile buyer. The API must refuse each.
const (
	StepReplay      Step = "replay"       // buy with another buyer's path
	StepForge       Step = "forge"        // buy with an invented path
	StepReadOther   Step = "read-other"   // read another buyer's order
	StepCancelOther Step = "cancel-other" // cancel another buyer's order
	StepReadUnknown Step = "read-unknown" // read an order that does not exist
)

// Attack plays a hostile buyer, who holds a valid token. It makes each possible attempt once and
// returns one line for each that was not refused. Attempts on others need a captured path or order.
// A call without an answer is not a breach.
func (b Buyer) Attack(ctx context.Context, captured *Captured) (breaches []string) {
	forged := make([]byte, 16)
	_, _ = rand.Read(forged) // never fails (crypto/rand)
	t := Result{due: b.Due}
	attempt := func(step Step, method, path string) {
		if ctx.Err() != nil {
			return
		}
		a, err := b.callOnce(ctx, &t, 0, step, method, path)
		if err == nil && a.Status < 400 {
			breaches = append(breaches, fmt.Sprintf("buyer %d: %s: %s %s answered %d %s",
				b.ID, step, method, path, a.Status, a.Reason))
		}
	}
	buy := "/decrStock?goodsId=" + b.GoodsID
	attempt(StepForge, http.MethodPost, "/"+hex.EncodeToString(forged)+buy)
	attempt(StepReadUnknown, http.MethodGet, "/orders/"+rand.Text())
	path, orderSn := captured.ofOther(b.ID, int(forged[0]))
	if path != "" {
		attempt(StepReplay, http.MethodPost, "/"+path+buy)
	}
	if orderSn != "" {
		attempt(StepReadOther, http.MethodGet, "/orders/"+orderSn)
		attempt(StepCancelOther, http.MethodPost, "/orders/"+orderSn+"/cancel")
	}
	return breaches
}
