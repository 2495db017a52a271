package seckill

// GateError says that a sale's gate is shut: nothing was taken. Redis holds no valid state of the sale,
// or holds another epoch than the caller thought.
type GateError struct {
	State GateState
	Epoch int64 // the epoch Redis has; 0 where it has none
}

// Error names the state.
func (e *GateError) Error() string { return "the sale's gate is shut: " + e.State.String() }

// GateState is why a script lets nothing through, or Open; the scripts return the same numbers.
type GateState int

// The states of a gate.
const (
	GateOpen    GateState = 0
	GateMissing GateState = 1 // Redis knows nothing of the sale
	GateShut    GateState = 2 // closed on purpose, while it is being rebuilt
	GateLease   GateState = 3 // loaded under another master's replication id: Redis was restarted or failed over
	GateEpoch   GateState = 4 // another epoch than the caller's: look again and ask again
	GateBacklog GateState = 5 // the outbox is too old to promise anything more
)

var gateNames = [...]string{"open", "missing", "shut", "lease lost", "another epoch", "backlog too old"}

// String is the state in words, for logs.
func (s GateState) String() string {
	if s < 0 || int(s) >= len(gateNames) {
		return "unknown"
	}
	return gateNames[s]
}
