package app

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"flashsale.dev/seckill/internal/auth"
	"flashsale.dev/seckill/internal/event"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/deadletter"
	"flashsale.dev/seckill/internal/order/inventory"
	"flashsale.dev/seckill/internal/order/livesales"
	"flashsale.dev/seckill/internal/order/orderwriter"
	"flashsale.dev/seckill/internal/order/outbox"
	"flashsale.dev/seckill/internal/order/payment"
	"flashsale.dev/seckill/internal/order/purchase"
	"flashsale.dev/seckill/internal/order/query"
	"flashsale.dev/seckill/internal/order/rebuild"
	"flashsale.dev/seckill/internal/order/reconcile"
	"flashsale.dev/seckill/internal/order/retention"
	"flashsale.dev/seckill/internal/order/stats"
	"flashsale.dev/seckill/internal/ordersn"
	"flashsale.dev/seckill/internal/redisstore"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/accesscode"
	"flashsale.dev/seckill/internal/seckill/catalog"
	"flashsale.dev/seckill/internal/sqlstore"
	"flashsale.dev/seckill/internal/ttlcache"
	"flashsale.dev/seckill/internal/waitingroom/admission"
	"flashsale.dev/seckill/internal/webhook"
	"flashsale.dev/seckill/internal/workers"
)

// Queue publishes messages and reports the state of the broker.
type Queue interface {
	order.Publisher
	// DownReason returns why the queue is down, and nil while it is up.
	DownReason() error
}

// AwaitUp waits until a queue's broker accepts messages. Its error names the cause of the wait.
func AwaitUp(ctx context.Context, q Queue) error {
	for q.DownReason() != nil {
		workers.Sleep(ctx, 5*time.Millisecond)
		if ctx.Err() != nil {
			return fmt.Errorf("RabbitMQ can't be used: %w", cmp.Or(q.DownReason(), ctx.Err()))
		}
	}
	return nil
}

// Parts are the servers and dependencies that the services use.
type Parts struct {
	Redis      redis.UniversalClient
	RedisStore *redisstore.Store
	Store      *sqlstore.Store
	Queue      Queue
	// Source is nil in a program that consumes nothing.
	Source order.Source
	// Provider takes and returns money. The built-in provider moves none.
	Provider payment.Provider
	// DeadLetters are messages that the broker could not deliver. NewQueues receives the number of
	// each shard whose queue is new. Both are nil with the in-memory queue.
	DeadLetters order.Source
	NewQueues   <-chan int
	// GateLifetime is for how long a gate is open without a renewal. It is 0 where Redis cannot
	// fail over: a gate then needs no renewal.
	GateLifetime time.Duration
	// MaxRebuilds limits how many rebuilds this process has under way, if it is below the limits of
	// package rebuild. With 0 only those apply.
	MaxRebuilds int
	Observers   Observers
	Log         *slog.Logger
}

// Observers receive what the services count and trace; each may be nil.
type Observers struct {
	Reservations purchase.Metrics
	Writes       orderwriter.Metrics
	Relayed      func(entries int)
	Repairs      reconcile.Metrics
	Rebuilt      func(rebuild.Result)
	LineMoved    func(seckill.Sale, admission.State)
	Webhooks     webhook.Metrics
	Tracer       order.Tracer
}

// Settings configure the services.
type Settings struct {
	OrderSecrets   [][]byte      // of paths and order numbers: the first signs, all verify
	PublishTimeout time.Duration // longest wait for a confirm
	ReplicaTimeout time.Duration // longest wait for Redis' replicas before a publish; 0: no wait
	PaymentTimeout time.Duration // until an unpaid order expires
	// AdmissionTimeout is how long a buyer whom a waiting room admits may take to buy.
	AdmissionTimeout time.Duration
	BatchSize        int           // orders of a full batch; its last message may bring more
	BatchLinger      time.Duration // least time between two batches
	// PhoneKeys seal phone numbers, addresses and the secrets of webhooks. The first seals, all
	// open; keys derived from OrderSecrets are added.
	PhoneKeys    []auth.PhoneKey
	WebhookAllow webhook.Allow
	Currency     string // of sales without one of their own and on the pages, ISO 4217
}

// phones returns what seals with PhoneKeys and with the keys derived from OrderSecrets.
func (s Settings) phones() (*auth.Phones, error) {
	keys := slices.Clone(s.PhoneKeys)
	for _, secret := range s.OrderSecrets {
		keys = append(keys, auth.DerivedPhoneKey(secret))
	}
	return auth.NewPhones(keys...)
}

// Services are the services behind the HTTP API.
type Services struct {
	Catalog     *catalog.Catalog
	Rooms       *admission.Service
	Codes       *accesscode.Service
	Sales       *inventory.SaleService
	Purchases   *purchase.Service
	Orders      *query.Service
	Payments    *payment.Service
	Statistics  *stats.Service
	DeadLetters *deadletter.Service
	Counters    *stats.Counters
}

// NewServices wires the services behind the HTTP API.
func NewServices(p Parts, s Settings) Services {
	keys := ordersn.NewKeys(s.OrderSecrets...)
	reader := catalog.NewSaleReader(p.RedisStore, p.Store)
	releaser := p.releaser()
	sales := &inventory.SaleService{
		Stores: releaser.Stores, Opener: p.opener(s),
		Ledgers:   reconcile.LedgerReader{Store: p.Store, Redis: p.RedisStore},
		Sums:      ttlcache.New[int64, seckill.Database](stats.RecentOptions()),
		CheckRate: checkRate, Exposed: reader.Exposed,
	}
	orders := query.NewService(query.Deps{
		Store: p.Store, Redis: p.RedisStore, Reader: reader, Sales: sales, Keys: keys,
		PublishDeadline: s.ReplicaTimeout + s.PublishTimeout,
	})
	counters := stats.NewCounters(p.RedisStore, p.Log)
	public := catalog.NewCatalog(reader, keys)
	return Services{
		Catalog: public, Rooms: admission.NewService(public, p.RedisStore, p.Store, s.OrderSecrets),
		Codes: accesscode.NewService(accesscode.NewKeys(s.OrderSecrets...), p.Store),
		Sales: sales, Orders: orders,
		Purchases: purchase.NewService(reader, p.RedisStore, orders, p.Queue, keys, counters,
			p.Observers.Reservations, p.Observers.Tracer,
			s.ReplicaTimeout+s.PublishTimeout, p.Log),
		Payments:    payment.NewService(orders, p.Store, releaser, p.Provider, p.Log),
		DeadLetters: p.DeadLetterService(s),
		Statistics: stats.NewService(sales, reader, p.RedisStore, p.Store.CountOrders,
			p.Store.PaidUnits),
		Counters: counters,
	}
}

// opener returns what loads a new epoch of a sale into Redis.
func (p Parts) opener(s Settings) rebuild.Opener {
	return rebuild.Opener{
		Store: p.Store, Redis: p.RedisStore, PaymentTimeout: s.PaymentTimeout,
		GateLifetime: p.GateLifetime,
	}
}

// Rebuilder returns a rebuilder of sales.
func (p Parts) Rebuilder(s Settings) *rebuild.Rebuilder {
	return &rebuild.Rebuilder{
		Opener: p.opener(s), Queue: p.Queue, Rebuilt: p.Observers.Rebuilt, Log: p.Log,
		Outbox: &outbox.Publisher{
			Store: p.RedisStore, Queue: p.Queue, Timeout: s.PublishTimeout,
			Relayed: p.Observers.Relayed,
		},
		PublishTimeout: s.ReplicaTimeout + s.PublishTimeout,
	}
}

// DeadLetterService returns the service that requeues and discards dead letters.
func (p Parts) DeadLetterService(s Settings) *deadletter.Service {
	return &deadletter.Service{
		Store: p.Store, Redis: p.RedisStore, Releaser: p.releaser(),
		Keys: ordersn.NewKeys(s.OrderSecrets...), PaymentTimeout: s.PaymentTimeout, Log: p.Log,
	}
}

// renewers returns the worker that renews gates; none where Redis cannot fail over. APIs and
// consumers run it, so a sale goes on while one of either runs.
func (p Parts) renewers() []Worker {
	if p.GateLifetime == 0 {
		return nil
	}
	return []Worker{&rebuild.Renewer{
		Store: p.Store, Redis: p.RedisStore, GateLifetime: p.GateLifetime, Log: p.Log,
	}}
}

// releaser returns a releaser of stock moves.
func (p Parts) releaser() *inventory.StockReleaser {
	stores := inventory.Stores{Store: p.Store, Redis: p.RedisStore, Log: p.Log}
	return &inventory.StockReleaser{Stores: stores}
}

// Worker runs until its context ends.
type Worker interface {
	// Run returns nil after its context has ended. An earlier return with an error stops the
	// program.
	Run(ctx context.Context) error
}

// WorkerFunc is a function that is a Worker.
type WorkerFunc func(ctx context.Context) error

// Run calls the function.
func (f WorkerFunc) Run(ctx context.Context) error { return f(ctx) }

// NewWorkers wires the background workers: they write orders, relay, expire, reconcile and rebuild.
// Any number of processes may run them.
func NewWorkers(p Parts, s Settings) []Worker {
	live := &livesales.List{Store: p.Store, Redis: p.RedisStore, Log: p.Log}
	releaser := p.releaser()
	rebuilder := p.Rebuilder(s)
	publisher := rebuilder.Outbox
	writer := &orderwriter.Writer{
		Store: p.Store, Redis: p.RedisStore, Releaser: releaser,
		Keys: ordersn.NewKeys(s.OrderSecrets...), Metrics: p.Observers.Writes,
		Tracer: p.Observers.Tracer, PaymentTimeout: s.PaymentTimeout, Log: p.Log,
	}
	placed := make(chan struct{}, 1) // the sequencer signals new events to the dispatcher
	workers := []Worker{
		live, releaser,
		&rebuild.Worker{Live: live, Rebuilder: rebuilder, MaxRebuilds: p.MaxRebuilds},
		&orderwriter.Consumer{
			Writer: writer, Source: p.Source, BatchSize: s.BatchSize, Linger: s.BatchLinger,
		},
		&orderwriter.Adopter{Writer: writer, Late: p.Store},
		&outbox.Relay{Live: live, Publisher: publisher, Queues: p.newQueues(), Log: p.Log},
		&reconcile.Reconciler{
			LedgerReader: reconcile.LedgerReader{Store: p.Store, Redis: p.RedisStore}, Live: live,
			Publisher: publisher, Metrics: p.Observers.Repairs, Log: p.Log,
		},
		&admission.Admitter{
			Lines: live.Lines, Redis: p.RedisStore, Store: p.Store, Life: s.AdmissionTimeout,
			PaymentTimeout: s.PaymentTimeout, Moved: p.Observers.LineMoved, Log: p.Log,
		},
		&payment.Expirer{Sales: live.Sales, Store: p.Store, Releaser: releaser, Log: p.Log},
		&payment.Refunder{Store: p.Store, Provider: p.Provider, Log: p.Log},
		&inventory.ChangeSyncer{Stores: releaser.Stores, Sales: live.Sales},
		&rebuild.Retirer{Store: p.Store, Redis: p.RedisStore, Log: p.Log},
		&event.Sequencer{Store: p.Store, Placed: placed, Log: p.Log},
		&retention.Worker{Store: p.Store, Log: p.Log},
	}
	workers = append(workers, p.renewers()...)
	workers = append(workers, p.dispatchers(s, placed)...)
	if pages, ok := p.Provider.(payment.Pages); ok {
		workers = append(workers, &payment.Poller{Store: p.Store, Pages: pages, Log: p.Log})
	}
	if p.DeadLetters != nil {
		// Undeliverable messages are tried again one by one, because another message of the batch
		// may have caused the failure.
		workers = append(workers,
			&orderwriter.Consumer{Writer: writer, Source: p.DeadLetters, BatchSize: 1})
	}
	return workers
}

// dispatchers returns the worker that sends events to webhooks, soon after a signal on placed. It
// returns none if the keys of the webhooks' secrets are invalid.
func (p Parts) dispatchers(s Settings, placed chan struct{}) []Worker {
	keys, err := s.phones()
	if err != nil {
		p.Log.Error("no webhooks are sent: correct SECKILL_PHONE_KEYS and restart", "err", err)
		return nil
	}
	return []Worker{&webhook.Dispatcher{
		Store: p.Store, Sender: webhook.NewSender(s.WebhookAllow, nil),
		Feed:    &event.Feed{Store: p.Store, Currency: s.Currency},
		Secrets: auth.WebhookSecrets{Keys: keys}, Metrics: p.Observers.Webhooks, Due: placed,
		Log: p.Log,
	}}
}

// newQueues returns the relay's source of new queues; the zero value with the in-memory queue,
// which loses its messages only together with Redis.
func (p Parts) newQueues() outbox.NewQueues {
	broker, ok := p.Queue.(interface {
		MarkRepublished(ctx context.Context, shard int) error
	})
	if !ok {
		return outbox.NewQueues{}
	}
	return outbox.NewQueues{
		Shard: p.NewQueues, Mark: broker.MarkRepublished, Shards: p.Source.Shards(),
	}
}
