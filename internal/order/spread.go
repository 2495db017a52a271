package order

import (
	"cmp"
	"slices"
	"time"

	"flashsale.dev/seckill/internal/seckill"
)

const (
	// thirstLife is how long an ask in vain counts: its buyer comes again after a second, or has left.
	thirstLife = 3 * time.Second
	// feedHold is how long a bucket keeps what came for those who had asked, so that they find it when they come again.
	feedHold = 2 * time.Second
	// plenty is how many units a bucket must have on the average for one to be filled up before anybody asks in vain: below,
	// units would travel where nobody wants them.
	plenty = 16
	// low is which part of the average a bucket has that is filled up then.
	low = 4
)

// transfer is units to be carried from one bucket to another; both are places in the list of buckets.
type transfer struct {
	from, to int
	units    int64
}

// pool is a bucket while transfers are planned.
type pool struct {
	place   int
	avail   int64
	keeps   int64 // units that are for those who asked
	wants   int64 // units asked for in vain, beyond what it has; 0 where nobody waits
	thirsty bool
	low     bool
	asked   time.Time
}

// spread plans what is to be carried between the buckets of a sale, of which it is told what it may touch: to each in which
// buyers wait, the one that was asked last first, and, while there is plenty, to each that runs low. It takes from the
// richest, and half of what that one has more, so that few transfers do; near the end single units go where they are asked for.
func spread(buckets []seckill.View) []transfer {
	pools, total := make([]pool, len(buckets)), int64(0)
	for i, v := range buckets {
		total += v.Available
		pools[i] = poolOf(i, v)
	}
	if len(pools) == 0 {
		return nil
	}
	average := total / int64(len(pools))
	for i := range pools {
		pools[i].low = average >= plenty && pools[i].avail < average/low
	}
	var plan []transfer
	for _, i := range inNeed(pools) {
		plan = append(plan, fill(pools, i)...)
	}
	return plan
}

func poolOf(place int, v seckill.View) pool {
	p := pool{place: place, avail: v.Available, asked: v.Thirst.At}
	if v.Thirst.Units > 0 && v.Now.Sub(v.Thirst.At) < thirstLife {
		p.thirsty = true
		if v.Thirst.Most > v.Available {
			p.wants = max(v.Thirst.Units, v.Thirst.Most) - v.Available
		}
	}
	if v.Now.Sub(v.Thirst.Fed) < feedHold {
		p.keeps = v.Thirst.Owed
	}
	return p
}

// inNeed lists the places of those that are to be given something, in the order in which they are.
func inNeed(pools []pool) []int {
	var need []int
	for _, p := range pools {
		if p.wants > 0 || p.low {
			need = append(need, p.place)
		}
	}
	slices.SortStableFunc(need, func(a, b int) int {
		p, q := pools[a], pools[b]
		return cmp.Or(cmp.Compare(min(q.wants, 1), min(p.wants, 1)), q.asked.Compare(p.asked))
	})
	return need
}

// fill takes from the richest until a bucket has what is wanted. It keeps that from then on.
func fill(pools []pool, to int) []transfer {
	var plan []transfer
	for _, from := range donors(pools, to) {
		p, q := &pools[to], &pools[from]
		units := min(q.avail-q.keeps, max(p.wants, (q.avail-p.avail)/2))
		if units <= 0 {
			continue
		}
		q.avail, p.avail, p.wants = q.avail-units, p.avail+units, p.wants-units
		plan = append(plan, transfer{from: from, to: to, units: units})
		if p.wants <= 0 {
			break
		}
	}
	pools[to].keeps, pools[to].low = pools[to].avail, false
	return plan
}

// donors lists the places of the others: those first in which nobody waits, and the richest of them first.
func donors(pools []pool, to int) []int {
	var list []int
	for _, p := range pools {
		if p.place != to {
			list = append(list, p.place)
		}
	}
	slices.SortStableFunc(list, func(a, b int) int {
		p, q := pools[a], pools[b]
		if p.thirsty != q.thirsty {
			if p.thirsty {
				return 1
			}
			return -1
		}
		return cmp.Compare(q.avail-q.keeps, p.avail-p.keeps)
	})
	return list
}
