package check

// statuses checks G5: each status in an answer to a buyer agrees with the order's row.
func (j *judge) statuses() {
	for _, b := range j.h.Buyers {
		if len(b.Accepted) == 0 {
			continue
		}
		sn := b.Accepted[0].OrderSn
		row, written := j.rows[sn]
		for _, status := range b.Statuses {
			if !j.consistent(status, row, written) {
				j.violated("G5", "buyer %d was answered that %s is %q; in MySQL it is %q",
					b.BuyerID, sn, status, row.Status)
			}
		}
	}
}

// consistent reports whether a status in an answer to a buyer agrees with the order's row.
func (j *judge) consistent(status string, row Row, written bool) bool {
	switch status {
	case "created":
		return written && row.Status != "failed"
	case "failed":
		return written && !row.Active() || !written && j.allow.BrokenPromises
	case "cancelled":
		return row.Status == "cancelled"
	case "queued", "paid", "expired":
		return true
	case "CONFLICT": // a cancellation that arrived after the payment timeout
		return row.Status == "expired"
	default:
		return false // an unknown status, or the reason of an error
	}
}

// window checks G6: no unit is sold outside the sale's window. The reservation lies between Sent
// and Received, so only a purchase that was certainly outside is a violation. A path that was
// promised an order before gets the same answer after the end.
func (j *judge) window() {
	for _, b := range j.h.Buyers {
		promised := make(map[string]bool)
		for _, p := range b.Accepted {
			outside := p.Received.Before(j.h.Sale.StartAt) || !p.Sent.Before(j.h.Sale.EndAt)
			if outside && !promised[p.Path] {
				j.violated("G6", "buyer %d got %s between %s and %s",
					b.BuyerID, p.OrderSn, p.Sent, p.Received)
			}
			promised[p.Path] = true
		}
	}
}

// repeats checks G7: one path makes one order, and no buyer has more orders than paths tried.
func (j *judge) repeats() {
	pathOf, orderOf := make(map[string]string), make(map[string]string)
	for _, b := range j.h.Buyers {
		for _, p := range b.Accepted {
			if sn, known := orderOf[p.Path]; known && sn != p.OrderSn {
				j.violated("G7", "buyer %d got %s and %s for one path", b.BuyerID, sn, p.OrderSn)
			}
			if path, known := pathOf[p.OrderSn]; known && path != p.Path {
				j.violated("G7", "order %s stands for two paths", p.OrderSn)
			}
			orderOf[p.Path], pathOf[p.OrderSn] = p.OrderSn, p.Path
		}
	}
	orders := make(map[int64]int)
	for _, r := range j.h.Rows {
		if r.Active() {
			orders[r.BuyerID]++
		}
	}
	for _, b := range j.h.Buyers {
		if n := orders[b.BuyerID]; n > b.Paths {
			j.verdict.Doubled += int64(n - b.Paths)
			j.violated("G7", "buyer %d has %d orders, and tried %d paths", b.BuyerID, n, b.Paths)
		}
		delete(orders, b.BuyerID)
	}
	for buyer, n := range orders {
		j.violated("G7", "buyer %d has %d orders, and never asked", buyer, n)
	}
}

// httpErrors checks the contract on 5xx: 503 with Retry-After is the only such answer.
func (j *judge) httpErrors() {
	for _, b := range j.h.Buyers {
		if b.ServerErrors > 0 || b.NoRetryAfter > 0 {
			j.violated("HTTP", "buyer %d got %d answers of 5xx other than 503, and %d of 503 "+
				"without Retry-After", b.BuyerID, b.ServerErrors, b.NoRetryAfter)
		}
	}
}
