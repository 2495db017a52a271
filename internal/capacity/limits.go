package capacity

import "slices"

// Limit is how much of one of a thing the peak would take: above 1 it breaks, and Then says what to do.
type Limit struct {
	What string  `json:"what"`
	Used float64 `json:"used"`
	Then string  `json:"then"`
}

// Of one queue and one host, measured (docs/how-to/scale.md says where).
const (
	queueMessages = 25_000 // a second, confirmed, through one quorum queue
	openFiles     = 1e6    // of one host: connections of buyers
)

// limits asks what breaks first if there were one of each: one API node, one shard, one queue, one writer.
func (w *worked) limits(p Plan) []Limit {
	l := w.sale.Land
	in, out := w.nicOfAPI()
	busiest := 0.0
	for _, h := range p.Hops[1:2] {
		busiest = max(busiest, h.To, h.From)
	}
	list := []Limit{
		{"processors of one API node", p.API.Peak / l.Cores, "more API nodes, before the sale begins"},
		{"NIC of one API node", max(in, out) / l.NICBits, "more API nodes; pages from a CDN"},
		{"memory of one API node", (w.memory() + w.cost.API.BaseMB) / l.NodeMB, "more API nodes, or an edge that shares connections"},
		{"connections of one host, buyers' own", w.peakOf(connections) / openFiles, "an edge of several hosts that shares connections"},
		{"event streams of one node", p.API.Streams / maxStreams, "more API nodes, or fewer streams: looks cost less"},
		{"processor of one Redis shard", p.Redis.Peak, "stock in buckets on several shards"},
		{"NIC of one Redis shard", busiest / l.NICBits, "stock in buckets on several shards"},
		{"one order queue", p.Rabbit.PeakMessages / queueMessages, "stock in buckets, which spread over SECKILL_ORDER_SHARDS queues"},
		{"the writer of one goods", w.flow.peak(w.flow.of[Purchases], w.window) / p.MySQL.Fastest, "stock in buckets, each a row with a writer of its own; else a backlog, and past SECKILL_MAX_BACKLOG_AGE the sale waits"},
		{"permits of the random path", w.flow.peak(asked(w.flow), w.window) / w.sale.Permits, "as meant: the rest is told to wait, or a higher rate of the sale"},
	}
	slices.SortStableFunc(list, func(a, b Limit) int {
		switch {
		case a.Used > b.Used:
			return -1
		case a.Used < b.Used:
			return 1
		}
		return 0
	})
	return list
}

// asked is who would have taken a permit: with a path, or told to wait.
func asked(f flow) []float64 {
	list := make([]float64, len(f.backlog))
	for k := range list {
		list[k] = f.of[Paths][k] + f.of[Limited][k]
	}
	return list
}
