package capacity

import (
	"math"
	"time"
)

// Bounds of what is looked for.
const (
	maxBuckets  = 1024
	maxStreams  = 10_000 // event streams of one node (httpapi)
	connections = 120.0  // seconds that an idle connection is kept (httpapi)
	leastNodes  = 2

	edgeConnections = 1000.0 // of an edge to each node
)

// worked is a plan as it is worked out.
type worked struct {
	sale   Sale
	cost   Calibration
	flow   flow
	window time.Duration

	nodes, buckets int
	writers        float64 // that write at the same time, in the mean
	lone           float64 // microseconds of a lone call to Redis
	// By step: trips for paths, trips of the limiter, looks at the sale, trips to reserve, transactions; and what they cost Redis and
	// the API.
	pathTrips, asides, saleLooks, orderTrips, commits, redisCPU, apiCPU []float64
}

// requests are what each stage costs the API.
func (c APICost) requests() map[Stage]Request {
	return map[Stage]Request{
		Pages: c.Page, Limited: c.Limited, Refused: c.Refused, Paths: c.Path, Held: c.Lost, Lost: c.Lost, Purchases: c.Bought, Queued: c.QueuedLook, Looks: c.Look, Streams: c.Stream,
	}
}

// settle lets the crowd flow to as many writers as there are, and finds the nodes and buckets for it; then again where more buckets
// make for more writers.
func (w *worked) settle() {
	w.buckets = max(1, w.sale.Land.Buckets)
	for range 5 {
		buckets := w.buckets
		w.writers = writers(buckets, w.sale.Land.Queues)
		w.flow = run(w.sale, w.writers*fastest(w.sale.Land, w.cost.MySQL.Write))
		if w.spread(); w.buckets == buckets {
			return
		}
	}
}

// spread finds how many nodes and buckets are needed: groups depend on both, and both on groups.
func (w *worked) spread() {
	w.nodes, w.buckets = max(leastNodes, w.sale.Land.Nodes), max(1, w.sale.Land.Buckets)
	if w.sale.Land.Nodes > 0 {
		w.nodes = w.sale.Land.Nodes
	}
	for range 20 {
		w.trips()
		nodes, buckets := w.enoughNodes(), w.enoughBuckets()
		if nodes == w.nodes && buckets == w.buckets {
			return
		}
		w.nodes, w.buckets = nodes, buckets
	}
}

// trips works out the calls of every step.
func (w *worked) trips() {
	n, step, c := len(w.flow.backlog), w.flow.step, w.cost
	for _, list := range []*[]float64{&w.pathTrips, &w.asides, &w.saleLooks, &w.orderTrips, &w.commits, &w.redisCPU, &w.apiCPU} {
		*list = make([]float64, n)
	}
	nodes, lines := float64(w.nodes), float64(w.nodes*w.buckets)
	for k := range n {
		at := func(stage Stage) float64 { return w.flow.of[stage][k] }
		paths, tries, rows := at(Paths), at(Purchases)+at(Lost)+at(Held), at(Written)
		together := group(paths/step/nodes, c.Redis.PathTrip)
		w.pathTrips[k] = paths / together
		w.asides[k] = step * nodes * permitCalls(paths/step/nodes, at(Limited)/step/nodes, together)
		w.saleLooks[k] = step * nodes * looks((paths+at(Limited)+at(Refused)+at(Pages)+at(Queued))/step/nodes, w.lone/1e6)
		w.orderTrips[k] = tries / group(tries/step/lines, c.Redis.Trip)
		w.commits[k] = rows / w.batch(rows/step)
		w.redisCPU[k] = c.Redis.Path.Of(w.pathTrips[k]+w.asides[k], paths) + c.Redis.LostCPU*(at(Lost)+at(Held)) +
			c.Redis.SaleLook.CPU*w.saleLooks[k] + c.Redis.Order.Of(w.orderTrips[k], at(Purchases)) + c.Redis.Look.CPU*at(Looks) + c.Redis.QueuedLook.CPU*at(Queued) + c.Redis.IdleCPU*step
		w.apiCPU[k] = c.API.TripCPU*(w.pathTrips[k]+w.orderTrips[k]) + c.API.IdleCPU*step*nodes
		w.apiCPU[k] += w.answers(at)
	}
}

// answers is what the API's answers of a step cost: each by its kind, and more where it finds its node asleep. A node of which a
// share u is busy is asleep with the probability e^-u.
func (w *worked) answers(at func(Stage) float64) (micros float64) {
	many := 0.0
	for stage, r := range w.cost.API.requests() {
		many, micros = many+at(stage), micros+r.CPU*at(stage)
	}
	busy := (micros + w.cost.API.WakeCPU*many) / 1e6 / w.flow.step / float64(w.nodes)
	return micros + w.cost.API.WakeCPU*many*math.Exp(-busy)
}

// enoughNodes keeps processor, memory, NIC and streams of each node within their use.
func (w *worked) enoughNodes() int {
	if w.sale.Land.Nodes > 0 {
		return w.sale.Land.Nodes
	}
	l := w.sale.Land
	in, out := w.nicOfAPI()
	need := max(
		w.flow.peak(w.apiCPU, w.window)/1e6/(l.Cores*l.Use),
		w.memory()/(l.NodeMB*l.Use-w.cost.API.BaseMB),
		max(in, out)/(l.NICBits*l.Use),
		w.streams()/maxStreams,
		leastNodes,
	)
	return int(math.Ceil(need))
}

// enoughBuckets keeps each shard's one processor within its use.
func (w *worked) enoughBuckets() int {
	if w.sale.Land.Buckets > 0 {
		return w.sale.Land.Buckets
	}
	need := math.Ceil(w.flow.peak(w.redisCPU, w.window) / 1e6 / w.sale.Land.Use)
	return int(min(max(1, need), maxBuckets))
}

// connections that are open at the most: each buyer's, for as long as it comes and two minutes more; or an edge's to each node.
func (w *worked) connections() float64 {
	s := w.sale
	if s.Land.Edge {
		return min(float64(s.Buyers), edgeConnections*float64(w.nodes))
	}
	stays := max(connections, s.Polls*PollEvery.Seconds()+s.Think.Seconds())
	return min(float64(s.Buyers), w.peakOf(stays))
}

// peakOf is the most buyers who come within so many seconds.
func (w *worked) peakOf(seconds float64) float64 {
	length := w.sale.length()
	if seconds >= length {
		return float64(w.sale.Buyers)
	}
	best := 0.0
	for x := 0.0; x < length; x += length / 1000 {
		best = max(best, w.sale.by((x+seconds)/length)-w.sale.by(x/length))
	}
	return best * float64(w.sale.Buyers)
}

// streams that are open at the same time: every one, for a buyer looks on for longer than a rush lasts.
func (w *worked) streams() float64 { return w.flow.total(Streams) }

// memory of all nodes beyond what each takes by itself, in MB.
func (w *worked) memory() float64 {
	return (w.connections()*w.cost.API.ConnectionKB + w.streams()*w.cost.API.StreamKB) / 1000
}
