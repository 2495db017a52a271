package capacity

import (
	_ "embed" // for the calibration below
	"encoding/json"
	"errors"
	"fmt"
)

//go:embed calibration.json
var builtIn []byte

// Calibration is what a piece of work costs on one machine. All CPU* are microseconds of processor time, all *Bytes are bytes
// without the headers of TCP and below.
type Calibration struct {
	Provenance Provenance   `json:"provenance"`
	API        APICost      `json:"api"`
	Redis      RedisCost    `json:"redis"`
	Rabbit     RabbitCost   `json:"rabbitmq"`
	Consumer   ConsumerCost `json:"consumer"`
	MySQL      MySQLCost    `json:"mysql"`
}

// Provenance says where a calibration comes from.
type Provenance struct {
	Machine string `json:"machine"`
	Date    string `json:"date"`
	Command string `json:"command"`
	Notes   string `json:"notes,omitempty"`
}

// Request is what one HTTP request costs the API, and its size on the way in and out.
type Request struct {
	CPU      float64 `json:"cpuMicros"`
	InBytes  float64 `json:"inBytes"`
	OutBytes float64 `json:"outBytes"`
}

// APICost is the API's. A stream is one event stream of an order from its opening to its end.
type APICost struct {
	IdleCPU      float64 `json:"idleMicrosPerSecond"`
	BaseMB       float64 `json:"baseMB"`
	ConnectionKB float64 `json:"connectionKB"`
	StreamKB     float64 `json:"streamKB"`
	Page         Request `json:"page"`
	Refused      Request `json:"refused"`
	Limited      Request `json:"limited"`
	Path         Request `json:"path"`
	Bought       Request `json:"bought"`
	Lost         Request `json:"lost"`
	Look         Request `json:"look"`
	QueuedLook   Request `json:"queuedLook"`
	Stream       Request `json:"stream"`
	TripCPU      float64 `json:"tripMicros"` // of each group that travels to Redis and RabbitMQ
	WakeCPU      float64 `json:"wakeMicros"` // on top of a request that finds the node asleep
}

// Sized is a cost of each call, message or transaction, and of each thing in it.
type Sized struct {
	Call float64 `json:"call"`
	Each float64 `json:"each"`
}

// Of is the cost of so many calls with so many things in them.
func (s Sized) Of(calls, things float64) float64 { return s.Call*calls + s.Each*things }

// Bytes are those that go in and come out.
type Bytes struct {
	In  float64 `json:"in"`
	Out float64 `json:"out"`
}

// Aside is what something costs a server beside its main work.
type Aside struct {
	CPU   float64 `json:"cpuMicros"`
	Bytes Bytes   `json:"bytes"`
}

// RedisCost is Redis'. The memory is of each entry, with its share of the tables that hold it.
type RedisCost struct {
	IdleCPU      float64 `json:"idleMicrosPerSecond"`
	IdleCalls    float64 `json:"idleCallsPerSecond"`
	Path         Sized   `json:"pathMicros"`
	Order        Sized   `json:"orderMicros"` // reserve, removal from the outbox and settling
	OrderCalls   Sized   `json:"orderCalls"`  // of each trip of a group, and of each batch written
	LostCPU      float64 `json:"lostMicros"`
	Idle         Bytes   `json:"idleBytesPerSecond"`
	SaleLook     Aside   `json:"saleLook"`   // a node's look at a sale that nobody else looks at in that moment
	Look         Aside   `json:"look"`       // what a look at an order costs here
	QueuedLook   Aside   `json:"queuedLook"` // and at one that is not written yet: it is one call more
	PathIn       Sized   `json:"pathInBytes"`
	PathOut      Sized   `json:"pathOutBytes"`
	OrderIn      Sized   `json:"orderInBytes"`
	OrderOut     Sized   `json:"orderOutBytes"`
	Sale         float64 `json:"saleBytes"` // of a sale before anybody has come, and of the tables that hold the rest
	UnusedPath   float64 `json:"unusedPathBytes"`
	UsedPath     float64 `json:"usedPathBytes"`
	Buyer        float64 `json:"buyerBytes"`
	Pending      float64 `json:"pendingBytes"`
	Outbox       float64 `json:"outboxBytes"`
	Trip         Sized   `json:"tripMicros"`      // how long a group is on its way to reserve
	PathTrip     Sized   `json:"pathTripMicros"`  // and for paths
	ConfirmDelay float64 `json:"confirmedMicros"` // from reserved to out of the outbox
}

// RabbitCost is RabbitMQ's: its processor time, and bytes from the API and to the consumer.
type RabbitCost struct {
	IdleCPU  float64 `json:"idleMicrosPerSecond"`
	CPU      Sized   `json:"micros"`
	InBytes  Sized   `json:"inBytes"`
	OutBytes Sized   `json:"outBytes"`
}

// ConsumerCost is the order consumer's, of each batch and order, and of each message.
type ConsumerCost struct {
	IdleCPU    float64 `json:"idleMicrosPerSecond"`
	CPU        Sized   `json:"micros"`
	MessageCPU float64 `json:"messageMicros"`
	Between    Sized   `json:"betweenMicros"` // from the end of a transaction to the next, on top of the linger
}

// MySQLCost is the database's, of each transaction and order.
type MySQLCost struct {
	IdleCPU     float64   `json:"idleMicrosPerSecond"`
	CPU         Sized     `json:"micros"`
	Write       Sized     `json:"writeMicros"` // how long a transaction takes
	InBytes     Sized     `json:"inBytes"`
	OutBytes    Sized     `json:"outBytes"`
	Idle        Bytes     `json:"idleBytesPerSecond"`
	Look        Aside     `json:"look"` // what a look at an order costs here
	QueuedLook  Aside     `json:"queuedLook"`
	IndexBytes  []float64 `json:"indexBytesPerOrder"` // of each index of orders and buyer_holdings, rows included
	RedoBytes   float64   `json:"redoBytesPerOrder"`
	BinlogBytes float64   `json:"binlogBytesPerOrder"`
}

// BuiltIn is the calibration that the program was built with.
func BuiltIn() (Calibration, error) { return ParseCalibration(builtIn) }

// ParseCalibration reads one from JSON, as make calibrate writes it. A cost below zero, and one that must be there and is not, is
// an error.
func ParseCalibration(text []byte) (Calibration, error) {
	var c Calibration
	if err := json.Unmarshal(text, &c); err != nil {
		return c, fmt.Errorf("read a calibration: %w", err)
	}
	var problems []error
	for name, cost := range map[string]float64{
		"api.refused.cpuMicros": c.API.Refused.CPU, "api.path.cpuMicros": c.API.Path.CPU, "api.bought.cpuMicros": c.API.Bought.CPU,
		"redis.orderMicros": c.Redis.Order.Call + c.Redis.Order.Each, "redis.tripMicros": c.Redis.Trip.Call,
		"mysql.micros": c.MySQL.CPU.Call + c.MySQL.CPU.Each, "mysql.writeMicros": c.MySQL.Write.Call,
	} {
		if !(cost > 0) {
			problems = append(problems, fmt.Errorf("%s must be above 0", name))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return c, fmt.Errorf("read a calibration: %w", err)
	}
	return c, nil
}

// Slower is the calibration of a machine that takes so many times as long (0.5: twice as fast). Bytes and memory stay.
func (c Calibration) Slower(factor float64) Calibration {
	for _, r := range []*Request{
		&c.API.Page, &c.API.Refused, &c.API.Limited, &c.API.Path, &c.API.Bought, &c.API.Lost, &c.API.Look, &c.API.QueuedLook, &c.API.Stream,
	} {
		r.CPU *= factor
	}
	for _, x := range []*float64{
		&c.API.IdleCPU, &c.API.TripCPU, &c.API.WakeCPU, &c.Redis.IdleCPU, &c.Redis.LostCPU, &c.Redis.Look.CPU, &c.Redis.QueuedLook.CPU, &c.MySQL.Look.CPU, &c.MySQL.QueuedLook.CPU, &c.Redis.ConfirmDelay,
		&c.Rabbit.IdleCPU, &c.Consumer.IdleCPU, &c.Consumer.MessageCPU, &c.MySQL.IdleCPU,
	} {
		*x *= factor
	}
	for _, s := range []*Sized{
		&c.Redis.Path, &c.Redis.Order, &c.Redis.Trip, &c.Redis.PathTrip, &c.Rabbit.CPU, &c.Consumer.CPU, &c.MySQL.CPU, &c.MySQL.Write,
	} {
		*s = Sized{s.Call * factor, s.Each * factor}
	}
	return c
}
