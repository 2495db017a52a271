package capacity

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Shape is how the buyers come.
type Shape string

// The shapes. Over is what Sale says.
const (
	AtOnce Shape = "at-once" // all in one instant: the answers are spread over the latency budget
	Even   Shape = "even"    // as many in each second of Over
	Ramp   Shape = "ramp"    // from nobody, growing evenly, to the end of Over
	Normal Shape = "normal"  // a bell whose middle 95 % come within Over
	Given  Shape = "given"   // as Come says, in equal parts of Over
)

// Sale is what is planned for.
type Sale struct {
	Buyers   int64         `json:"buyers"`
	Units    int64         `json:"units"`
	Quantity int64         `json:"quantity"` // that each buyer takes, perBuyerLimit at most
	Shape    Shape         `json:"shape"`
	Over     time.Duration `json:"over"`
	Come     []float64     `json:"come,omitempty"` // how many come in each part of Over, or in what proportion
	Think    time.Duration `json:"think"`          // from the path to the purchase
	Retries  int           `json:"retries"`        // how often a buyer who is told to wait comes again, a second later
	Polls    float64       `json:"polls"`          // looks at the sale's page of each buyer before it presses, PollEvery apart
	Looks    float64       `json:"looks"`          // at each order that no stream follows
	Streams  float64       `json:"streams"`        // share of the orders that an event stream follows
	Budget   time.Duration `json:"budget"`         // within which an answer must come

	Permits float64       `json:"permits"` // random paths a second
	Burst   time.Duration `json:"burst"`   // of permits that pile up
	Wait    time.Duration `json:"wait"`    // that may be booked ahead

	Land Land `json:"land"`
}

// Land is what it is to run on.
type Land struct {
	Factor     float64       `json:"factor"`     // of the calibration's processor times: 0.5 is a machine twice as fast
	Cores      float64       `json:"cores"`      // of one API node
	NodeMB     float64       `json:"nodeMB"`     // memory of one API node
	NICBits    float64       `json:"nicBits"`    // a second, of every host
	Use        float64       `json:"use"`        // share of a processor or NIC that is to be used at the peak
	Nodes      int           `json:"nodes"`      // API nodes; as many as are needed if 0
	Edge       bool          `json:"edge"`       // holds the buyers' connections, and asks the nodes over a thousand each
	Buckets    int           `json:"buckets"`    // Redis shards that the stock is split over; as many as are needed if 0
	Queues     int           `json:"queues"`     // SECKILL_ORDER_SHARDS
	Trip       time.Duration `json:"trip"`       // of a call to Redis and back; as calibrated if 0
	LoneTrip   time.Duration `json:"loneTrip"`   // the same where little else is to do; Trip if 0
	Write      time.Duration `json:"write"`      // of a transaction that writes orders, in the mean; as calibrated if 0
	Linger     time.Duration `json:"linger"`     // SECKILL_BATCH_LINGER
	BatchSize  float64       `json:"batchSize"`  // SECKILL_BATCH_SIZE
	BacklogAge time.Duration `json:"backlogAge"` // SECKILL_MAX_BACKLOG_AGE; 0 is any
}

// PollEvery is the time between two looks at the sale's page.
const PollEvery = 2 * time.Second

// Default is a sale as it is if nobody says otherwise.
func Default() Sale {
	return Sale{
		Buyers: 100_000, Units: 10_000, Quantity: 1, Shape: Ramp, Over: 10 * time.Second, Think: time.Second, Retries: 5, Polls: 3, Looks: 2,
		Budget: time.Second, Permits: 1000, Burst: time.Second, Wait: time.Second,
		Land: Land{
			Factor: 1, Cores: 4, NodeMB: 8192, NICBits: 10e9, Use: 0.6,
			Queues: 4, Linger: 10 * time.Millisecond, BatchSize: 500, BacklogAge: 10 * time.Second,
		},
	}
}

// Bounds of what may be planned.
const (
	maxPeople = 1e10
	maxOver   = 24 * time.Hour
)

// Check tells everything that is wrong with a sale at once.
func (s Sale) Check() error {
	var problems []error
	must := func(ok bool, what string) {
		if !ok {
			problems = append(problems, errors.New(what))
		}
	}
	within := func(x, low, high float64) bool { return x >= low && x <= high } // false for NaN
	must(within(float64(s.Buyers), 1, maxPeople), "buyers must be 1 to 10^10")
	must(within(float64(s.Units), 1, maxPeople) && s.Quantity >= 1 && s.Quantity <= 1000, "units must be 1 to 10^10, and a buyer's quantity 1 to 1000")
	must(s.Shape == AtOnce || s.Shape == Even || s.Shape == Ramp || s.Shape == Normal || s.Shape == Given && comes(s.Come), "the shape must be at-once, even, ramp or normal, or given with who comes")
	must(s.Shape == AtOnce || s.Over >= 10*time.Millisecond && s.Over <= maxOver, "over must be 10ms to 24h")
	must(s.Think >= 0 && s.Think <= time.Hour, "the time to think must be 0 to 1h")
	must(s.Retries >= 0 && s.Retries <= 1000, "retries must be 0 to 1000")
	must(within(s.Polls, 0, 1000) && within(s.Looks, 0, 1000), "polls and looks must be 0 to 1000")
	must(within(s.Streams, 0, 1), "streams is a share, 0 to 1")
	must(s.Budget >= time.Millisecond && s.Budget <= time.Minute, "the budget must be 1ms to 1m")
	must(within(s.Permits, 0.001, maxPeople) && s.Burst >= 0 && s.Wait >= 0 && s.Burst <= time.Hour && s.Wait <= time.Minute, "permits must be above 0, burst and wait not negative")
	return errors.Join(append(problems, s.Land.check())...)
}

// comes tells whether a list is of somebody who comes.
func comes(list []float64) bool {
	all := 0.0
	for _, n := range list {
		if !(n >= 0) {
			return false
		}
		all += n
	}
	return all > 0 && !math.IsInf(all, 0)
}

func (l Land) check() error {
	for _, x := range []float64{l.Factor, l.Cores, l.NodeMB, l.NICBits, l.BatchSize} {
		if !(x > 0) || math.IsInf(x, 0) {
			return fmt.Errorf("factor, cores, memory, NIC and batch size must be above 0, not %v", x)
		}
	}
	if !(l.Use > 0 && l.Use <= 1) || l.Nodes < 0 || l.Buckets < 0 || l.Buckets > maxBuckets || l.Queues < 1 || l.Trip < 0 || l.LoneTrip < 0 || l.Write < 0 || l.Linger < 0 || l.BacklogAge < 0 {
		return errors.New("use is a share above 0, nodes and buckets must not be negative, buckets at most 1024, queues at least 1")
	}
	return nil
}
