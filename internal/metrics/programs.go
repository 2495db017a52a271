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

// Consumer holds the metrics of an order consumer. A consumer also runs the relay, the reconciler
// and the rebuilds, which Repairs counts.
type Consumer struct {
	*Registry
	Writes     *Writes
	Repairs    *Repairs
	Lines      *Lines
	Webhooks   *Webhooks
	Publishing *Publishing
}

// NewConsumer makes a consumer's metrics. Registry.Connections adds those of its connections.
func NewConsumer(version string) *Consumer {
	r := newRegistry(version)
	return &Consumer{
		r, r.newWrites(), r.newRepairs(), r.newLines(), r.newWebhooks(), r.newPublishing(),
	}
}

// Standalone holds the metrics of both programs in one process, except those of RabbitMQ and of
// connections.
type Standalone struct {
	*Registry
	*Requests
	*Limiter
	Reservations *Reservations
	Writes       *Writes
	Repairs      *Repairs
	Lines        *Lines
	Webhooks     *Webhooks
}

// NewStandalone makes the metrics of standalone.
func NewStandalone(version string) *Standalone {
	r := newRegistry(version)
	return &Standalone{
		r, r.newRequests(), r.newLimiter(), r.newReservations(), r.newWrites(), r.newRepairs(),
		r.newLines(), r.newWebhooks(),
	}
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
