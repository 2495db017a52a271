package metrics

// API is what a node of the API tells.
type API struct {
	*Registry
	*Requests
	*Limiter
	Desk  *Desk
	Queue *Queue
}

// NewAPI makes an API's metrics; those of its pools come when it has some.
func NewAPI(version string) *API {
	r := New(version)
	return &API{Registry: r, Requests: r.newRequests(), Limiter: r.newLimiter(), Desk: r.newDesk(), Queue: r.newQueue()}
}

// Consumer is what an order consumer tells.
type Consumer struct {
	*Registry
	Writer *Writer
	Mender *Mender
	Survey *Survey
	Queue  *Queue
}

// NewConsumer makes a consumer's metrics; those of its pools come when it has some.
func NewConsumer(version string) *Consumer {
	r := New(version)
	return &Consumer{Registry: r, Writer: r.newWriter(), Mender: r.newMender(), Survey: r.newSurvey(), Queue: r.newQueue()}
}
