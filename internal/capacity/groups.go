package capacity

import "math"

// mostInGroup is seckill.MaxGroup: as many buyers travel in one call at most.
const mostInGroup = 256

// group is how many travel together in the mean, where so many arrive each second at one line whose trips take trip microseconds.
// Trips grow with their groups, so it is a fixed point; it is found from below, and is the cap where trips cannot keep up.
func group(perSecond float64, trip Sized) float64 {
	g := 1.0
	for range 100 {
		meet := perSecond * trip.Of(1, g) / 1e6
		next := min(meet+math.Exp(-meet), mostInGroup)
		if math.Abs(next-g) < 1e-4 {
			return next
		}
		g = next
	}
	return g
}

// batch is how many orders the writer of one goods finds in a transaction, where so many come each second: what comes while it
// lingers, writes and turns round, and at least one.
func batch(perSecond float64, l Land, write, between Sized) float64 {
	linger, most := l.Linger.Seconds(), l.BatchSize
	if spare := 1 - perSecond*(write.Each+between.Each)/1e6; spare > 0 {
		most = min(most, perSecond*(linger+(write.Call+between.Call)/1e6)/spare)
	}
	return max(1, most)
}

// looks is how often a node looks at a sale in Redis each second, where so many ask it. A look that was shared is told to others, and
// goes on being told for as long as somebody asks while it is renewed; who asks alone looks alone (seckill.recent). So looks come in turns
// of two kinds: alone until one is shared, then renewed until nobody asked in the meantime.
func looks(perSecond, trip float64) float64 {
	if perSecond <= 0 {
		return 0
	}
	shared := 1 - math.Exp(-perSecond*trip)
	alone, renewed := 1/max(shared, 1e-9), min(1/max(1-shared, 1e-9), 1e9)
	seconds := alone*(1/perSecond+trip) + renewed*(1/renewals+1/perSecond)
	return (alone + renewed) / seconds
}

// writers is how many queues the buckets of a sale lie in, in the mean: a queue has one consumer at a time, and buckets fall on queues by
// chance.
func writers(buckets, queues int) float64 {
	n := float64(queues)
	return n * (1 - math.Pow(1-1/n, float64(buckets)))
}

// fastest is how many orders the writer of one goods writes each second when batches are full: a full batch waits for nobody.
func fastest(l Land, write Sized) float64 { return l.BatchSize * 1e6 / write.Of(1, l.BatchSize) }

// Of the rate limiter and of the memory of a moment.
const (
	renewals    = 40.0  // looks a second of each node at a sale that many ask for: one each 25 ms (seckill.Moment / 2)
	leaseOfRule = 10.0  // permits that a node holds at most (the rule randomPath)
	leaseHot    = 0.1   // seconds in which a lease must be used up to grow
	askEvery    = 0.005 // seconds between two questions of a node that was told no
	bookkeeping = 4.0   // calls a second with which each node follows the limits
)

// permitCalls is how often a node asks the limiter each second, where it gives so many paths and tells so many to wait.
func permitCalls(paths, limited, together float64) float64 {
	lease := max(1, min(leaseOfRule, paths*leaseHot), together)
	return paths/lease + min(limited, 1/askEvery)
}
