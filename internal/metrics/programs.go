package metrics

// API holds the metrics of a node of the API. The parts that the programs hand to single packages
// have names; the others are embedded.
type API struct {
	*Registry
	*Requests
	*Limiter
	Reservations *Reservations
	Publishing   *Publishing
}

// NewAPI makes an API's metrics. Registry.Connections adds those of its connections.
func NewAPI(version string) *API {
	r := newRegistry(version)
	return &API{r, r.newRequests(), r.newLimiter(), r.newReservations(), r.newPublishing()}
}

// Workers are the metrics of the background workers, alike in an order consumer and in standalone.
// Repairs counts the relay, the reconciler and the rebuilds.
type Workers struct {
	Writes   *Writes
	Repairs  *Repairs
	Lines    *Lines
	Webhooks *Webhooks
}

func (r *Registry) newWorkers() Workers {
	return Workers{r.newWrites(), r.newRepairs(), r.newLines(), r.newWebhooks()}
}

// Consumer holds the metrics of an order consumer.
type Consumer struct {
	*Registry
	Workers
	Publishing *Publishing
}

// NewConsumer makes a consumer's metrics. Registry.Connections adds those of its connections.
func NewConsumer(version string) *Consumer {
	r := newRegistry(version)
	return &Consumer{r, r.newWorkers(), r.newPublishing()}
}

// Standalone holds the metrics of both programs in one process, except those of RabbitMQ and of
// connections.
type Standalone struct {
	*Registry
	*Requests
	*Limiter
	Reservations *Reservations
	Workers
}

// NewStandalone makes the metrics of standalone.
func NewStandalone(version string) *Standalone {
	r := newRegistry(version)
	return &Standalone{r, r.newRequests(), r.newLimiter(), r.newReservations(), r.newWorkers()}
}

// LimitService holds the metrics of ratelimitd. All of them are among the API's.
type LimitService struct {
	*Registry
	*Limiter
}

// NewLimitService makes ratelimitd's metrics. Registry.RedisPool adds those of its connections.
func NewLimitService(version string) *LimitService {
	r := newRegistry(version)
	return &LimitService{r, r.newLimiter()}
}
