package capacity

import (
	_ "embed" // for calibration.json
	"encoding/json"
	"fmt"
)

//go:embed calibration.json
var builtIn []byte

// Calibration holds what a piece of work costs on one machine, and the bytes that it takes on any.
// Costs has a Row's part and work as its keys, such as "API: GET /sales/{goodsId}". Bytes has what
// an Amount is of, such as "MySQL tables".
type Calibration struct {
	// Measured names the machine, date and command. A plan shows it, because costs of another
	// machine may be off by a factor of two.
	Measured string             `json:"measured"`
	Costs    map[string]Cost    `json:"costs"`
	Bytes    map[string]float64 `json:"bytes"`
}

// Cost is the processor time of one piece of work in microseconds. A request also has its size in
// both directions, without the headers of TCP and below.
type Cost struct {
	Micros   float64 `json:"micros"`
	InBytes  float64 `json:"inBytes,omitempty"`
	OutBytes float64 `json:"outBytes,omitempty"`
}

// BuiltIn returns the calibration that the program was built with.
func BuiltIn() (Calibration, error) { return ParseCalibration(builtIn) }

// ParseCalibration reads a calibration from JSON.
func ParseCalibration(text []byte) (c Calibration, err error) {
	if err := json.Unmarshal(text, &c); err != nil {
		return c, fmt.Errorf("read a calibration: %w", err)
	}
	return c, nil
}
