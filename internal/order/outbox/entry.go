package outbox

// Entry holds the reservations of one message that the queue has not confirmed.
type Entry struct {
	ID      string // its place in the outbox
	Entries []byte // the JSON array of its order lines, for message.EncodeOrders
}
