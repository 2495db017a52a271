package app

import (
	"context"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

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
	"flashsale.dev/seckill/internal/order/stats"
	"flashsale.dev/seckill/internal/ordersn"
	"flashsale.dev/seckill/internal/paymentprovider"
	"flashsale.dev/seckill/internal/redisstore"
	"flashsale.dev/seckill/internal/seckill/catalog"
	"flashsale.dev/seckill/internal/sqlstore"
)

// Queue is where orders wait between Redis and MySQL, as a publisher sees it.
type Queue interface {
	order.Publisher
	Up() bool
	// DownReason says why it is not up; "" where it is.
	DownReason() string
}

// Parts are what the services stand on.
type Parts struct {
	Redis redis.UniversalClient
	Shelf *redisstore.Store
	Store *sqlstore.Store
	Queue Queue
	// Source is nil in a program that consumes nothing.
	Source order.Source
	// Provider takes the money; nil is the built-in one, which takes none.
	Provider order.Provider
	// Dead is where the broker itself puts what it could not deliver, and Fresh tells of shards whose queue is new; both
	// are nil where the queue is part of the process.
	Dead  order.Source
	Fresh <-chan int
	// Seen is who hears of what else is done.
	Seen Observers
	Log  *slog.Logger
}

func (p Parts) provider() order.Provider {
	if p.Provider == nil {
		return paymentprovider.Test{}
	}
	return p.Provider
}

// Settings are what the services may be told.
type Settings struct {
	OrderSecret    []byte
	PublishTimeout time.Duration // longest wait for a confirm
	ReplicasWait   time.Duration // longest wait for Redis' replicas before that; 0 where they don't count
	PaymentTimeout time.Duration // until an unpaid order expires
	BatchSize      int           // orders in one transaction at most
	BatchLinger    time.Duration // how long a batch waits to fill
}

// Services are what the HTTP API answers with.
type Services struct {
	Shop    *catalog.Catalog
	Sales   *inventory.SaleService
	Desk    *purchase.Service
	Finder  *query.Service
	Cashier *payment.Service
	Figures *stats.Service
	Letters *deadletter.Service
	Tally   *stats.Counters
}

// NewServices wires the services.
func NewServices(p Parts, s Settings) Services {
	minter := ordersn.NewMinter(s.OrderSecret)
	front := catalog.NewSaleReader(p.Shelf, p.Store)
	auditor := reconcile.NewReconciler(nil, p.Store, p.Shelf, nil, nil, p.Log)
	giver := inventory.NewStockReleaser(p.Store, p.Shelf, p.Log)
	sales := inventory.NewSaleService(p.Store, p.Shelf, rebuild.NewOpener(p.Store, p.Shelf), auditor, giver, CheckRate, p.Log)
	finder := query.NewService(p.Store, p.Shelf, front, sales, minter)
	tally := stats.NewCounters(p.Shelf, p.Log)
	return Services{
		Shop: catalog.NewCatalog(front, p.Shelf, p.Store), Sales: sales, Finder: finder,
		Desk:    purchase.NewService(front, p.Shelf, p.Queue, minter, tally, p.Seen.Desk, p.Seen.Tracer, s.PublishTimeout, p.Log),
		Cashier: payment.NewService(finder, p.Store, giver, p.provider(), p.Log),
		Letters: deadletter.NewService(p.Store, p.Shelf, giver, minter, s.PaymentTimeout, p.Log),
		Figures: stats.NewService(sales, front, p.Store, p.Shelf), Tally: tally,
	}
}

// Worker is something that runs until its context ends.
type Worker interface {
	Run(ctx context.Context) error
}

// WorkerFunc is a Worker of a function.
type WorkerFunc func(ctx context.Context) error

// Run calls the function.
func (f WorkerFunc) Run(ctx context.Context) error { return f(ctx) }

// NewCrew wires the background work of an installation: what writes orders, and what mends. Any number of processes may
// have a crew.
func NewCrew(p Parts, s Settings) []Worker {
	minter := ordersn.NewMinter(s.OrderSecret)
	live := livesales.New(p.Store, s.PaymentTimeout, p.Log)
	giver := inventory.NewStockReleaser(p.Store, p.Shelf, p.Log)
	relay := outbox.NewRelay(live, p.Shelf, p.Queue, p.Seen.Relay, s.PublishTimeout, p.Log)
	opener := rebuild.NewOpener(p.Store, p.Shelf)
	rebuilder := rebuild.NewRebuilder(live, p.Store, p.Shelf, relay, p.Queue, opener, p.Seen.Rebuild, s.ReplicasWait+s.PublishTimeout, p.Log)
	auditor := reconcile.NewReconciler(live, p.Store, p.Shelf, relay, p.Seen.Audit, p.Log)
	writer := orderwriter.NewWriter(p.Store, p.Shelf, giver, minter, p.Seen.Writer, p.Seen.Tracer, s.PaymentTimeout, p.Log)
	consumer := orderwriter.NewConsumer(p.Source, writer, orderwriter.ConsumerOptions{BatchSize: s.BatchSize, Linger: s.BatchLinger}, p.Seen.Tracer, p.Log)
	workers := []Worker{
		live, consumer, relay, rebuilder, giver, auditor,
		payment.NewExpirer(live, p.Store, giver, p.Log), inventory.NewChangeSyncer(live, p.Store, p.Shelf, p.Log),
		rebuild.NewRetirer(p.Store, p.Shelf, p.Log), payment.NewRefunder(p.Store, p.provider(), p.Log),
	}
	if p.Seen.Survey != nil {
		workers = append(workers, reconcile.NewSampler(live, p.Store, p.Shelf, auditor, p.Seen.Survey, p.Log))
	}
	if p.Dead != nil {
		// What the broker gave up on is tried once more, one message at a time: its batch may have been at fault, not it.
		workers = append(workers, orderwriter.NewConsumer(p.Dead, writer, orderwriter.ConsumerOptions{BatchSize: 1}, p.Seen.Tracer, p.Log))
	}
	if marker, ok := p.Queue.(outbox.BrokerMarker); ok && p.Fresh != nil {
		workers = append(workers, outbox.NewRepublisher(live, relay, marker, p.Source.Shards(), p.Fresh, p.Log))
	}
	return workers
}
