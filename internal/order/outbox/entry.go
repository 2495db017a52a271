package outbox

// Entry holds reservations that one message carries and that the queue has not confirmed.
type Entry struct {
	ID      string // its place in the outbox
	Entries []byte // the JSON array of its lines, as EncodeOrders takes it
}
