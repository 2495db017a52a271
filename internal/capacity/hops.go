package capacity

// Hop is what goes over one way, at its highest: bytes of the payload in all, and bits a second on the wire.
type Hop struct {
	Way    string  `json:"way"`
	MBTo   float64 `json:"MBTo"`
	MBFrom float64 `json:"MBFrom"`
	To     float64 `json:"peakBitsTo"`
	From   float64 `json:"peakBitsFrom"`
}

// What goes round a payload, in bytes: the headers of Ethernet, IP and TCP with timestamps, preamble and gap, of each packet.
const (
	packet  = 1448.0
	headers = 90.0
)

// wire is the bytes on the wire of so many messages that are so long together.
func wire(messages, bytes float64) float64 { return bytes + headers*(messages+bytes/packet) }

// way is messages and bytes by step, in one direction.
type way struct{ messages, bytes []float64 }

func (w *worked) hop(name string, to, from way) Hop {
	bits := func(d way) float64 {
		return 8 * w.flow.peak(w.each(func(k int) float64 { return wire(d.messages[k], d.bytes[k]) }), w.window)
	}
	return Hop{name, sum(to.bytes) / 1e6, sum(from.bytes) / 1e6, bits(to), bits(from)}
}

// buyersWay is HTTP's, both directions.
func (w *worked) buyersWay() (to, from way) {
	requests := w.cost.API.requests()
	counted := func(size func(Request) float64) []float64 {
		return w.each(func(k int) (sum float64) {
			for stage, r := range requests {
				sum += size(r) * w.flow.of[stage][k]
			}
			return sum
		})
	}
	one := counted(func(Request) float64 { return 1 })
	return way{one, counted(func(r Request) float64 { return r.InBytes })}, way{one, counted(func(r Request) float64 { return r.OutBytes })}
}

// redisWay is between API and Redis.
func (w *worked) redisWay() (to, from way) {
	c := w.cost.Redis
	sized := func(path, order Sized, sale, look, queued, idle float64) []float64 {
		return w.each(func(k int) float64 {
			return sale*w.saleLooks[k] + look*w.flow.of[Looks][k] + queued*w.flow.of[Queued][k] + idle*w.flow.step + path.Of(w.pathTrips[k]+w.asides[k], w.flow.of[Paths][k]) +
				order.Of(w.orderTrips[k], w.flow.of[Purchases][k]+w.flow.of[Lost][k]+w.flow.of[Held][k])
		})
	}
	trips := w.each(func(k int) float64 {
		return w.flow.of[Queued][k] + w.pathTrips[k] + w.asides[k] + w.saleLooks[k] + 2*w.orderTrips[k]
	})
	return way{trips, sized(c.PathIn, c.OrderIn, c.SaleLook.Bytes.In, c.Look.Bytes.In, c.QueuedLook.Bytes.In, c.Idle.In)}, way{trips, sized(c.PathOut, c.OrderOut, c.SaleLook.Bytes.Out, c.Look.Bytes.Out, c.QueuedLook.Bytes.Out, c.Idle.Out)}
}

// nicOfAPI is the bits a second that all nodes together take in and give out.
func (w *worked) nicOfAPI() (in, out float64) {
	for _, h := range w.hops()[:3] {
		if h.Way == wayIn {
			in, out = in+h.To, out+h.From
		} else {
			in, out = in+h.From, out+h.To
		}
	}
	return in, out
}

const wayIn = "buyers ↔ API"

func (w *worked) hops() []Hop {
	messages, commits := w.each(w.messages), w.commits
	rabbit, mysql := w.cost.Rabbit, w.cost.MySQL
	of := func(calls []float64, things Stage, size Sized) way {
		return way{calls, w.each(func(k int) float64 { return size.Of(calls[k], w.flow.of[things][k]) })}
	}
	toMySQL := func(size Sized, look, queued, idle float64) way {
		asked := w.each(func(k int) float64 { return commits[k] + w.flow.of[Looks][k] + w.flow.of[Queued][k] })
		return way{asked, w.each(func(k int) float64 {
			return size.Of(commits[k], w.flow.of[Written][k]) + look*w.flow.of[Looks][k] + queued*w.flow.of[Queued][k] + idle*w.flow.step
		})}
	}
	buyersTo, buyersFrom := w.buyersWay()
	redisTo, redisFrom := w.redisWay()
	return []Hop{
		w.hop(wayIn, buyersTo, buyersFrom),
		w.hop("API, consumer ↔ Redis", redisTo, redisFrom),
		w.hop("API → RabbitMQ", of(messages, Purchases, rabbit.InBytes), of(messages, Purchases, Sized{Call: confirmBytes})),
		w.hop("RabbitMQ → consumer", of(messages, Written, rabbit.OutBytes), of(commits, Written, Sized{Call: confirmBytes})),
		w.hop("consumer, API ↔ MySQL", toMySQL(mysql.InBytes, mysql.Look.Bytes.In, mysql.QueuedLook.Bytes.In, mysql.Idle.In), toMySQL(mysql.OutBytes, mysql.Look.Bytes.Out, mysql.QueuedLook.Bytes.Out, mysql.Idle.Out)),
	}
}

// confirmBytes is a confirm's or an acknowledgement's frame.
const confirmBytes = 21
