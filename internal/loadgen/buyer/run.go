package buyer

import (
	"context"
	"net/http"
	"sync"
	"time"

	"flashsale.dev/seckill/internal/loadgen/apiclient"
	"golang.org/x/sync/errgroup"
)

// Plan is a rush: so many buyers, so many of them at once, each going the whole way.
type Plan struct {
	Base     string
	Bases    []string // several APIs, among which the buyers are spread; Base alone if empty
	GoodsID  string
	Buyers   int
	AtOnce   int
	Quantity int64                               // each asks for; 1 if 0
	Asks     int                                 // each asks so often at the same time, each with a path of its own; 1 if 0
	Patience time.Duration                       // 30 s if 0
	FirstID  int64                               // the buyers' ids go up from here; 1 if 0
	ID       func(i int) int64                   // the i-th buyer's id; counted up from FirstID if nil
	Token    func(buyerID int64) (string, error) // signs a buyer's token
	Done     func()                              // called as each buyer ends; may be nil
	Glance   time.Duration                       // longest pause between a buyer's looks at an order; 500 ms if 0
	Over     time.Duration                       // the buyers come spread over so long; all as fast as they can if 0

	// Stubborn buyers outlive an API: see Buyer. CallTimeout bounds each of their calls; 30 s if 0.
	Stubborn    bool
	CallTimeout time.Duration
	Again       int    // each asks so often again with the path that won
	Greedy      int    // every so manieth tries to buy once more when it has; nobody if 0
	Cancels     int    // every so manieth cancels what it bought, twice; nobody if 0
	Won         func() // called at each first 202; may be nil
	// Through may put something round the HTTP client of all buyers; may be nil.
	Through func(*http.Client) *http.Client
}

// Run lets the buyers rush and returns what each was told. An error is a buyer's whose call could not be made or
// read at all; the others go on.
func Run(ctx context.Context, p Plan) (Report, error) {
	p = p.withDefaults()
	httpClient := apiclient.NewHTTP(p.AtOnce * p.Asks)
	if p.CallTimeout > 0 {
		httpClient.Timeout = p.CallTimeout
	}
	defer httpClient.CloseIdleConnections()
	if p.Through != nil {
		httpClient = p.Through(httpClient)
	}
	var g errgroup.Group
	g.SetLimit(p.AtOnce)
	var mu sync.Mutex
	report := Report{Began: time.Now()}
	for i := range p.Buyers {
		p.await(ctx, report.Began, i)
		id := p.ID(i)
		g.Go(func() error {
			told, err := p.oneBuyer(ctx, id, apiclient.Client{Base: p.Bases[i%len(p.Bases)], HTTP: httpClient})
			mu.Lock()
			defer mu.Unlock()
			report.Told = append(report.Told, told...)
			if p.Done != nil {
				p.Done()
			}
			return err
		})
	}
	err := g.Wait()
	report.Took = time.Since(report.Began)
	return report, err
}

// await waits until the i-th buyer's time has come.
func (p Plan) await(ctx context.Context, began time.Time, i int) {
	wait := time.Until(began.Add(p.Over * time.Duration(i) / time.Duration(p.Buyers)))
	if wait <= 0 {
		return
	}
	select {
	case <-time.After(wait):
	case <-ctx.Done():
	}
}

func (p Plan) withDefaults() Plan {
	p.Quantity, p.Asks, p.FirstID = max(1, p.Quantity), max(1, p.Asks), max(1, p.FirstID)
	if len(p.Bases) == 0 {
		p.Bases = []string{p.Base}
	}
	if first := p.FirstID; p.ID == nil {
		p.ID = func(i int) int64 { return first + int64(i) }
	}
	if p.Patience == 0 {
		p.Patience = 30 * time.Second
	}
	return p
}

func (p Plan) oneBuyer(ctx context.Context, id int64, c apiclient.Client) ([]Told, error) {
	token, err := p.Token(id)
	if err != nil {
		return nil, err
	}
	c.Token = token
	b := Buyer{
		Client: c, ID: id, GoodsID: p.GoodsID, Quantity: p.Quantity, Patience: p.Patience, Glance: p.Glance,
		Stubborn: p.Stubborn, Bases: p.Bases, Again: p.Again, Won: p.Won,
		Greedy: p.Greedy > 0 && id%int64(p.Greedy) == 0, Cancels: p.Cancels > 0 && id%int64(p.Cancels) == 0,
	}
	told := make([]Told, p.Asks)
	var g errgroup.Group
	for i := range told {
		g.Go(func() error {
			var err error
			told[i], err = b.Buy(ctx)
			return err
		})
	}
	return told, g.Wait()
}
