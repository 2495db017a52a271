package check

import "time"

// statuses checks G5: each status in an answer to a buyer agrees with the order's row.
func (j *judge) statuses() {
	for _, b := range j.h.Buyers {
		if len(b.Promises) == 0 {
			continue
		}
		sn := b.Promises[0].OrderSn
		row, written := j.rows[sn]
		for _, status := range b.Statuses {
			if !j.consistent(status, row, written) {
				j.violated("G5", "buyer %d was answered that %s is %q; in MySQL it is %q",
					b.ID, sn, status, row.Status)
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
	default:
		return false // an unknown status, or the reason of an error
	}
}

// window checks G6: no unit is sold outside the sale's window. The reservation lies between Asked
// and Answered, so only a purchase that was certainly outside is a violation. A path that was
// promised an order before gets the same answer after the end.
func (j *judge) window() {
	for _, b := range j.h.Buyers {
		first := make(map[string]time.Time)
		for _, p := range b.Promises {
			if _, repeated := first[p.Path]; repeated {
				continue
			}
			first[p.Path] = p.Answered
			if p.Answered.Before(j.h.Sale.StartAt) || !p.Asked.Before(j.h.Sale.EndAt) {
				j.violated("G6", "buyer %d got %s between %s and %s",
					b.ID, p.OrderSn, p.Asked, p.Answered)
			}
		}
	}
}

// repeats checks G7: one path makes one order, and no buyer has more orders than paths tried.
func (j *judge) repeats() {
	pathOf, orderOf := make(map[string]string), make(map[string]string)
	for _, b := range j.h.Buyers {
		for _, p := range b.Promises {
			if sn, known := orderOf[p.Path]; known && sn != p.OrderSn {
				j.violated("G7", "buyer %d got %s and %s for one path", b.ID, sn, p.OrderSn)
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
		if n := orders[b.ID]; n > b.Paths {
			j.verdict.Doubled += int64(n - b.Paths)
			j.violated("G7", "buyer %d has %d orders, and tried %d paths", b.ID, n, b.Paths)
		}
		delete(orders, b.ID)
	}
	for buyer, n := range orders {
		j.violated("G7", "buyer %d has %d orders, and never asked", buyer, n)
	}
}

// httpErrors checks the contract on 5xx: 503 with Retry-After is the only such answer.
func (j *judge) httpErrors() {
	for _, b := range j.h.Buyers {
		if b.ServerErrors > 0 {
			j.violated("HTTP", "buyer %d got %d answers of 5xx other than 503", b.ID,
				b.ServerErrors)
		}
		if b.MissingRetryAfter > 0 {
			j.violated("HTTP", "buyer %d got %d answers of 503 without Retry-After",
				b.ID, b.MissingRetryAfter)
		}
	}
}
