package capacity

import (
	_ "embed" // for calibration.json
	"encoding/json"
	"fmt"
)

//go:embed calibration.json
var builtIn []byte

// Calibration holds what a piece of work costs on one machine. Micros are microseconds of processor
// time. Bytes of requests are without the headers of TCP and below. The traffic of one order is a
// sum of these, so each was measured apart from the others.
type Calibration struct {
	Provenance Provenance   `json:"provenance"`
	API        APICost      `json:"api"`
	Redis      RedisCost    `json:"redis"`
	RabbitMQ   CallCost     `json:"rabbitmq"` // per message, and per order in it
	Consumer   ConsumerCost `json:"consumer"`
	MySQL      MySQLCost    `json:"mysql"`
}

// Provenance names the machine, date and command of a measurement. A plan shows it, because costs
// of another machine may be off by a factor of two.
type Provenance struct {
	Machine string `json:"machine"`
	Date    string `json:"date"` // YYYY-MM-DD
	Command string `json:"command"`
	Notes   string `json:"notes,omitempty"`
}

// CallCost is the cost in microseconds of a call, and of each item in the call. Both were fitted to
// loads with small and with large batches.
type CallCost struct {
	Call float64 `json:"callMicros"`
	Item float64 `json:"itemMicros"`
}

// RequestCost is what one HTTP request costs the API, and its size in both directions.
type RequestCost struct {
	Micros   float64 `json:"cpuMicros"`
	InBytes  float64 `json:"inBytes"`
	OutBytes float64 `json:"outBytes"`
}

// APICost holds the API's costs. Status is a status query of one order. Stream is an event stream
// from its opening to its end. Call is one batched call to Redis or RabbitMQ.
type APICost struct {
	BaseMB       float64     `json:"baseMB"`
	ConnectionKB float64     `json:"connectionKB"`
	StreamKB     float64     `json:"streamKB"`
	Page         RequestCost `json:"page"`
	Limited      RequestCost `json:"limited"`
	SoldOut      RequestCost `json:"soldOut"`
	Path         RequestCost `json:"path"`
	Purchase     RequestCost `json:"purchase"`
	Status       RequestCost `json:"status"`
	Stream       RequestCost `json:"stream"`
	Call         float64     `json:"callMicros"`
}

// RedisCost holds Redis' processor time, and the bytes that one sale and each entry take.
type RedisCost struct {
	Path         CallCost `json:"path"`
	Reserve      CallCost `json:"reserve"` // with the outbox and settling
	Status       float64  `json:"statusMicros"`
	SaleBytes    float64  `json:"saleBytes"`
	BuyerBytes   float64  `json:"buyerBytes"`
	PendingBytes float64  `json:"pendingBytes"` // until the order is written
}

// ConsumerCost holds the order consumer's costs: per transaction, order and message. A message may
// hold several orders, and a transaction several messages.
type ConsumerCost struct {
	Transaction CallCost `json:"transaction"`
	Message     float64  `json:"messageMicros"`
}

// MySQLCost holds the database's costs: processor time, and bytes per order. The logs grow with the
// orders and are flushed with each transaction, so they need a disk of their own.
type MySQLCost struct {
	Transaction CallCost `json:"transaction"`
	Status      float64  `json:"statusMicros"`
	TableBytes  float64  `json:"tableBytesPerOrder"` // rows and indexes
	RedoBytes   float64  `json:"redoBytesPerOrder"`
	BinlogBytes float64  `json:"binlogBytesPerOrder"`
}

// BuiltIn returns the calibration that the program was built with.
func BuiltIn() (Calibration, error) { return ParseCalibration(builtIn) }

// ParseCalibration reads a calibration from JSON. A missing main cost is an error, because the
// plan would show work that costs nothing.
func ParseCalibration(text []byte) (Calibration, error) {
	var c Calibration
	if err := json.Unmarshal(text, &c); err != nil {
		return c, fmt.Errorf("read a calibration: %w", err)
	}
	for name, cost := range map[string]float64{
		"api.path.cpuMicros": c.API.Path.Micros, "api.purchase.cpuMicros": c.API.Purchase.Micros,
		"redis.reserve":     c.Redis.Reserve.Call + c.Redis.Reserve.Item,
		"mysql.transaction": c.MySQL.Transaction.Call + c.MySQL.Transaction.Item,
	} {
		if !(cost > 0) {
			return c, fmt.Errorf("read a calibration: %s must be above 0", name)
		}
	}
	return c, nil
}
