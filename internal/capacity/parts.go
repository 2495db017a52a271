package capacity

import "math"

func sum(list []float64) (sum float64) {
	for _, x := range list {
		sum += x
	}
	return sum
}

// work is a list of microseconds by step as Work.
func (w *worked) work(micros []float64) Work {
	return Work{Seconds: sum(micros) / 1e6, Peak: w.flow.peak(micros, w.window) / 1e6}
}

// each makes a list by step.
func (w *worked) each(of func(k int) float64) []float64 {
	list := make([]float64, len(w.flow.backlog))
	for k := range list {
		list[k] = of(k)
	}
	return list
}

func (w *worked) api() API {
	return API{
		Work: w.work(w.apiCPU), Nodes: w.nodes, Connections: w.connections(), Streams: w.streams(),
		NodeMB: w.cost.API.BaseMB + w.memory()/float64(w.nodes),
	}
}

func (w *worked) redis() Redis {
	orders, c := w.flow.total(Purchases), w.cost.Redis
	calls := w.each(func(k int) float64 {
		return w.flow.of[Queued][k] + w.pathTrips[k] + w.asides[k] + w.saleLooks[k] + c.OrderCalls.Call*w.orderTrips[k] + c.OrderCalls.Each*w.commits[k] +
			w.flow.step*(c.IdleCalls+bookkeeping*float64(w.nodes))
	})
	r := Redis{
		Work: w.work(w.redisCPU), Calls: sum(calls), PeakCalls: w.flow.peak(calls, w.window), Shards: w.buckets,
		PerGroup: ratio(orders+w.flow.total(Lost)+w.flow.total(Held), sum(w.orderTrips)),
	}
	keep := func(what string, entries, each float64) {
		r.Memory = append(r.Memory, Kept{what, math.Round(entries), entries * each / 1e6})
	}
	onTheWay := w.flow.peak(w.flow.of[Purchases], w.window)
	keep("the sale itself", 1, c.Sale)
	keep("random paths that nobody used yet", w.pathsAlive(), c.UnusedPath)
	keep("used paths, for 24 h", orders, c.UsedPath)
	keep("buyers", orders, c.Buyer)
	keep("pending orders", most(w.flow.backlog)+onTheWay*w.cycle(), c.Pending)
	keep("outbox", onTheWay*c.ConfirmDelay/1e6, c.Outbox)
	r.WorstMB = (c.Sale + w.pathsAlive()*c.UnusedPath + orders*(c.UsedPath+c.Buyer+c.Pending+c.Outbox)) / 1e6
	return r
}

// cycle is how long an order waits for its transaction where there is no backlog, in seconds.
func (w *worked) cycle() float64 {
	write := w.cost.MySQL.Write
	return w.sale.Land.Linger.Seconds() + write.Of(1, batch(w.flow.peak(w.flow.of[Written], w.window)/w.writers, w.sale.Land, write, w.cost.Consumer.Between))/1e6
}

// pathsAlive is the most paths that were given in the last minute, and not used.
func (w *worked) pathsAlive() float64 {
	minute := int(60 / w.flow.step)
	alive, highest := 0.0, 0.0
	for k, given := range w.flow.of[Paths] {
		alive += given - w.flow.of[Purchases][k]
		if k >= minute {
			alive = max(0, alive-w.flow.of[Lost][k-minute])
		}
		highest = max(highest, alive)
	}
	return highest
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

func (w *worked) rabbit() Rabbit {
	c := w.cost.Rabbit
	messages := w.each(w.messages)
	cpu := w.each(func(k int) float64 { return c.CPU.Of(messages[k], w.flow.of[Purchases][k]) + c.IdleCPU*w.flow.step })
	orders := w.flow.total(Purchases)
	bytes := c.InBytes.Of(sum(messages), orders)
	return Rabbit{
		Work: w.work(cpu), Messages: sum(messages), PeakMessages: w.flow.peak(messages, w.window), MB: bytes / 1e6,
		QueueMB: ratio(bytes, orders) * most(w.flow.backlog) / 1e6,
	}
}

// messages are the groups in which somebody won.
func (w *worked) messages(k int) float64 {
	won, lost := w.flow.of[Purchases][k], w.flow.of[Lost][k]+w.flow.of[Held][k]
	return min(won, w.orderTrips[k]*ratio(won, won+lost))
}

func (w *worked) consumer() Consumer {
	c := w.cost.Consumer
	cpu := w.each(func(k int) float64 {
		return c.CPU.Of(w.commits[k], w.flow.of[Written][k]) + c.MessageCPU*w.messages(k) + c.IdleCPU*w.flow.step
	})
	return Consumer{Work: w.work(cpu), Active: int(math.Round(w.writers))}
}

// tables is what InnoDB takes for so many MB of rows and indexes: beyond some pages it gives each of the four indexes whole megabytes,
// of which half of the last is empty in the mean.
func tables(mb float64) float64 {
	if mb < 2 {
		return mb
	}
	return mb + 2
}

// Rows that an order makes (orders, buyer_holdings), and that a transaction changes (the goods' stock).
const (
	rowsOfOrder       = 2
	rowsOfTransaction = 1
)

func (w *worked) mysql() MySQL {
	c, orders := w.cost.MySQL, w.flow.total(Written)
	cpu := w.each(func(k int) float64 {
		return c.CPU.Of(w.commits[k], w.flow.of[Written][k]) + c.Look.CPU*w.flow.of[Looks][k] + c.QueuedLook.CPU*w.flow.of[Queued][k] + c.IdleCPU*w.flow.step
	})
	rows := w.each(func(k int) float64 { return rowsOfOrder*w.flow.of[Written][k] + rowsOfTransaction*w.commits[k] })
	return MySQL{
		Work: w.work(cpu), Transactions: sum(w.commits), PeakTransactions: w.flow.peak(w.commits, w.window),
		PerTransaction: ratio(orders, sum(w.commits)), PeakRows: w.flow.peak(rows, w.window), Fastest: fastest(w.sale.Land, c.Write),
		DataMB: tables(orders * c.DataBytes / 1e6), RedoMB: orders * c.RedoBytes / 1e6, BinlogMB: orders * c.BinlogBytes / 1e6,
	}
}
