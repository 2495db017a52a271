package seckill

// GateError means that a sale's gate is shut and nothing was taken. Redis has no valid state of the
// sale, has another epoch than the caller's, or has a backlog that is too old.
type GateError struct {
	State GateState
	Epoch int64 // the epoch in Redis; 0 if it has none
}

// Error returns the state in words.
func (e *GateError) Error() string { return "the sale's gate is shut: " + e.State.String() }

// GateState is GateOpen or the reason for which a script refuses everything. The scripts return the
// same numbers.
type GateState int

// The states of a gate.
const (
	GateOpen    GateState = 0
	GateMissing GateState = 1 // Redis has no state of the sale
	GateShut    GateState = 2 // closed on purpose, during a rebuild
	GateLease   GateState = 3 // Redis was restarted or failed over since the sale was loaded
	GateEpoch   GateState = 4 // Redis has another epoch than the caller
	GateBacklog GateState = 5 // the oldest pending order is too old to accept more orders
	GateExpired GateState = 6 // no worker has renewed it, where Redis can fail over
)

// Name returns the state as the API names it. "SHUT" stands for the states of a call, which no view
// of a sale has, and for unknown ones.
func (s GateState) Name() string {
	switch s {
	case GateOpen:
		return "OPEN"
	case GateMissing:
		return "MISSING"
	case GateLease:
		return "LEASE_LOST"
	case GateExpired:
		return "NOT_RENEWED"
	case GateShut, GateEpoch, GateBacklog:
	}
	return "SHUT"
}

var gateNames = [...]string{
	"open", "missing", "shut", "lease lost", "another epoch", "backlog too old", "not renewed",
}

// String returns the state in words, for logs.
func (s GateState) String() string {
	if s < 0 || int(s) >= len(gateNames) {
		return "unknown"
	}
	return gateNames[s]
}
