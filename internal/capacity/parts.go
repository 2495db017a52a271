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

// batch is how many orders a transaction has where so many are written each second. A time that is given is of a whole transaction.
func (w *worked) batch(perSecond float64) float64 {
	return batch(perSecond/w.writers, w.sale.Land, w.write(), w.cost.Consumer.Between)
}

func (w *worked) write() Sized {
	if w.sale.Land.Write > 0 {
		return Sized{Call: w.cost.MySQL.Write.Call}
	}
	return w.cost.MySQL.Write
}

// cycle is how long an order waits for its transaction where there is no backlog, in seconds.
func (w *worked) cycle() float64 {
	return w.sale.Land.Linger.Seconds() + w.write().Of(1, w.batch(w.flow.peak(w.flow.of[Written], w.window)))/1e6
}

// lastRow is when the last order is in MySQL: the flow knows of no way that takes time, and the last buyer goes all of it. -1 where
// nobody buys.
func (w *worked) lastRow() float64 {
	if w.flow.total(Written) == 0 {
		return w.flow.lastRow
	}
	return w.flow.lastRow + (w.cost.Redis.PathTrip.Of(1, 1)+w.cost.Redis.Trip.Of(1, 1))/1e6 + w.cycle()
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

// What InnoDB gives an index (https://dev.mysql.com/doc/refman/8.4/en/innodb-file-space.html): the first pages one by one, and then
// extents of a megabyte.
const (
	pageBytes   = 16 << 10
	lonePages   = 32
	extentPages = 64
)

// tables is what so many orders take in all indexes, in MB: each has pages for its rows, and one above them.
func (c MySQLCost) tables(orders float64) (mb float64) {
	for _, each := range c.IndexBytes {
		pages := orders*each/pageBytes + 1
		if pages > lonePages {
			pages = lonePages + extentPages*math.Ceil((pages-lonePages)/extentPages)
		}
		mb += pages * pageBytes / 1e6
	}
	return mb
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
		DataMB: c.tables(orders), RedoMB: orders * c.RedoBytes / 1e6, BinlogMB: orders * c.BinlogBytes / 1e6,
	}
}
