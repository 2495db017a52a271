package capacity

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
)

// Text writes a plan for people: figures have three digits that mean something, for a model has no more.
func (p Plan) Text(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(format string, args ...any) { fmt.Fprintf(t, format+"\n", args...) }
	p.head(line)
	line("\nrequests\tin all\tpeak /s")
	for _, r := range p.Stages {
		line("  %s\t%s\t%s", r.Stage, short(r.Total), short(r.Peak))
	}
	p.parts(line)
	line("\nRedis memory\tentries\tMB")
	for _, k := range p.Redis.Memory {
		line("  %s\t%s\t%s", k.What, short(k.Entries), short(k.MB))
	}
	line("  at worst, nothing written while it sells\t\t%s", short(p.Redis.WorstMB))
	line("\nnetwork\tMB there\tMB back\tpeak there\tpeak back")
	for _, h := range p.Hops {
		line("  %s\t%s\t%s\t%sbit/s\t%sbit/s", h.Way, short(h.MBTo), short(h.MBFrom), scaled(h.To), scaled(h.From))
	}
	line("\nwhat breaks first, of one each\tused\tthen")
	for _, l := range p.Limits {
		line("  %s\t%s\t%s", l.What, times(l.Used), l.Then)
	}
	line("\ncosts: %s, %s, %s", p.Calibration.Machine, p.Calibration.Date, p.Calibration.Command)
	return t.Flush()
}

func (p Plan) head(line func(string, ...any)) {
	s := p.Sale
	how := string(s.Shape)
	if s.Shape != AtOnce {
		how += fmt.Sprintf(" over %s", s.Over)
	}
	line("%s buyers for %s units, %s, %s permits/s", short(float64(s.Buyers)), short(float64(s.Units)), how, short(s.Permits))
	switch {
	case p.SoldOut >= 0:
		line("sold out after %s s, the last order in MySQL after %s s", short(p.SoldOut), short(p.LastRow))
	default:
		line("%s units stay unsold; the last order in MySQL after %s s", short(p.Unsold), short(p.LastRow))
	}
	if p.GaveUp > 0 {
		line("%s buyers give up, told to wait %d times", short(p.GaveUp), s.Retries+1)
	}
}

func (p Plan) parts(line func(string, ...any)) {
	line("\npart\thow many\tCPU s\tpeak cores\twhat it does")
	line("  API\t%d nodes\t%s\t%s\t%s connections, %s streams, %s MB a node", p.API.Nodes, short(p.API.Seconds), short(p.API.Peak),
		short(p.API.Connections), short(p.API.Streams), short(p.API.NodeMB))
	line("  Redis\t%d masters\t%s\t%s\t%s calls, %s/s; %s reservations a call", p.Redis.Shards, short(p.Redis.Seconds), short(p.Redis.Peak),
		short(p.Redis.Calls), short(p.Redis.PeakCalls), short(p.Redis.PerGroup))
	line("  RabbitMQ\t%d in use\t%s\t%s\t%s messages, %s/s, %s MB; %s MB wait", p.Consumer.Active, short(p.Rabbit.Seconds), short(p.Rabbit.Peak),
		short(p.Rabbit.Messages), short(p.Rabbit.PeakMessages), short(p.Rabbit.MB), short(p.Rabbit.QueueMB))
	line("  consumer\t%d at work\t%s\t%s\tbacklog of %s orders at most", p.Consumer.Active, short(p.Consumer.Seconds), short(p.Consumer.Peak), short(p.Backlog))
	line("  MySQL\t%d at a time\t%s\t%s\t%s transactions, %s/s; %s rows/s; %s orders/s at most of each", p.Consumer.Active, short(p.MySQL.Seconds), short(p.MySQL.Peak),
		short(p.MySQL.Transactions), short(p.MySQL.PeakTransactions), short(p.MySQL.PeakRows), short(p.MySQL.Fastest))
	line("\t\t\t\t%s MB of tables, %s MB of redo log, %s MB of binlog", short(p.MySQL.DataMB), short(p.MySQL.RedoMB), short(p.MySQL.BinlogMB))
}

// short writes a number with three digits that mean something, and commas.
func short(x float64) string {
	if x == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return fmt.Sprintf("%.0f", x)
	}
	unit := math.Pow(10, math.Floor(math.Log10(math.Abs(x)))-2)
	x = math.Round(x/unit) * unit
	if math.Abs(x) < 100 {
		return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.*f", max(0, int(math.Round(-math.Log10(unit)))), x), "0"), ".")
	}
	text := fmt.Sprintf("%.0f", x)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// scaled writes a rate with a prefix.
func scaled(x float64) string {
	for _, prefix := range []string{"", "k", "M", "G", "T"} {
		if x < 999.5 || prefix == "T" {
			return short(x) + " " + prefix
		}
		x /= 1000
	}
	return ""
}

// times writes how much of a thing is used.
func times(x float64) string {
	if x < 10 {
		return fmt.Sprintf("%.0f %%", 100*x)
	}
	return short(x) + " ×"
}
