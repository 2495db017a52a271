package app

import (
	"context"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/ordersn"
	"flashsale.dev/seckill/internal/paymentprovider"
	"flashsale.dev/seckill/internal/redisstore"
	"flashsale.dev/seckill/internal/seckill"
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
	// Observers receive what the services count and trace.
	Observers Observers
	Log       *slog.Logger
}

// Observers receive what the services count and trace; each may be nil.
type Observers struct {
	Reservations order.DeskObserver
	Writes       order.WriterObserver
	Outbox       order.RelayObserver
	Repairs      order.Observer
	Sales        order.SurveyObserver
	Tracer       order.Tracer
}

func (p Parts) observer() order.Observer {
	if p.Observers.Repairs == nil {
		return order.Unobserved{}
	}
	return p.Observers.Repairs
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
	Shop    *seckill.Shop
	Sales   *seckill.Sales
	Desk    *order.Desk
	Finder  *order.Finder
	Cashier *order.Cashier
	Changes *order.Stockroom
	Figures *order.Bookkeeper
	Letters *order.Coroner
	Tally   *order.Tally
}

// NewServices wires the services.
func NewServices(p Parts, s Settings) Services {
	minter := ordersn.NewMinter(s.OrderSecret)
	front := seckill.NewFront(p.Shelf, p.Store)
	auditor := order.NewAuditor(nil, p.Store, p.Shelf, nil, p.Log)
	sales := seckill.NewSales(p.Store, p.Shelf, seckill.NewOpener(p.Store, p.Shelf), auditor, CheckRate, p.Log)
	finder := order.NewFinder(p.Store, p.Shelf, front, sales, minter)
	giver := order.NewGiver(p.Store, p.Shelf, p.Log)
	tally := order.NewTally(p.Shelf, p.Log)
	return Services{
		Shop: seckill.NewShop(front, p.Shelf, p.Store), Sales: sales, Finder: finder,
		Desk:    order.NewDesk(front, p.Shelf, p.Queue, minter, s.PublishTimeout, p.Log).Counting(tally).Observed(p.Observers.Reservations).Traced(p.Observers.Tracer),
		Cashier: order.NewCashier(finder, p.Store, giver, p.provider(), p.Log),
		Letters: order.NewCoroner(p.Store, p.Shelf, giver, minter, s.PaymentTimeout, p.Log),
		Figures: order.NewBookkeeper(sales, front, p.Store, p.Shelf), Tally: tally,
		Changes: order.NewStockroom(sales, p.Store, p.Shelf, giver, CheckRate, p.Log),
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
	live := order.NewLive(p.Store, s.PaymentTimeout, p.Log)
	giver := order.NewGiver(p.Store, p.Shelf, p.Log)
	relay := order.NewRelay(live, p.Shelf, p.Queue, s.PublishTimeout, p.Log).Observed(p.Observers.Outbox)
	opener := seckill.NewOpener(p.Store, p.Shelf)
	rebuilder := order.NewRebuilder(live, p.Store, p.Shelf, relay, p.Queue, opener, s.ReplicasWait+s.PublishTimeout, p.Log).ObservedBy(p.observer())
	auditor := order.NewAuditor(live, p.Store, p.Shelf, relay, p.Log).ObservedBy(p.observer())
	writer := order.NewWriter(p.Store, p.Shelf, giver, minter, s.PaymentTimeout, p.Log).Observed(p.Observers.Writes).Traced(p.Observers.Tracer)
	consumer := order.NewConsumer(p.Source, writer, order.ConsumerOptions{BatchSize: s.BatchSize, Linger: s.BatchLinger}, p.Log).Traced(p.Observers.Tracer)
	workers := []Worker{
		live, consumer, relay, rebuilder, giver, auditor,
		order.NewExpirer(live, p.Store, giver, p.Log), order.NewSteward(live, p.Store, p.Shelf, p.Log),
		order.NewRetirer(p.Store, p.Shelf, p.Log), order.NewRefunder(p.Store, p.provider(), p.Log),
	}
	if p.Observers.Sales != nil {
		workers = append(workers, order.NewSurveyor(live, p.Store, p.Shelf, auditor, p.Observers.Sales, p.Log))
	}
	if p.Dead != nil {
		// What the broker gave up on is tried once more, one message at a time: its batch may have been at fault, not it.
		workers = append(workers, order.NewConsumer(p.Dead, writer, order.ConsumerOptions{BatchSize: 1}, p.Log).Traced(p.Observers.Tracer))
	}
	if marker, ok := p.Queue.(order.Marker); ok && p.Fresh != nil {
		workers = append(workers, order.NewFeeder(live, relay, marker, p.Source.Shards(), p.Fresh, p.Log))
	}
	return workers
}
