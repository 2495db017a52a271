package buyers

import (
	"cmp"
	"context"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"flashsale.dev/seckill/internal/loadgen/apiclient"
	"flashsale.dev/seckill/internal/loadgen/buyer"
	"flashsale.dev/seckill/internal/workers"
)

// Plan describes a run of many buyers with the same behaviour.
type Plan struct {
	Base        string   // URL of an API: http://host:port
	Bases       []string // APIs that share the buyers; only Base if empty
	GoodsID     string
	Buyers      int
	Concurrency int                                 // buyers at a time
	Quantity    int64                               // units of each purchase; 1 if 0
	Patience    time.Duration                       // see buyer.Buyer; 30 s if 0
	FirstID     int64                               // first of the consecutive buyer ids; 1 if 0
	Token       func(buyerID int64) (string, error) // signs a buyer's token
	OnDone      func()                              // called when a buyer ends; may be nil
	Spread      time.Duration                       // spreads the starts; 0 for none
	// ParallelPurchases start together for each buyer, with a path each; 1 if 0.
	ParallelPurchases int
	// MaxPollInterval is the longest interval between two reads of an order; 500 ms if 0.
	MaxPollInterval time.Duration

	RetryErrors    bool          // see buyer.Buyer
	CallTimeout    time.Duration // of each call; 30 s if 0
	Repeats        int           // repeated calls with the accepted path
	BuysAgainEvery int           // every nth buyer tries a second purchase; 0 for none
	CancelsEvery   int           // every nth buyer cancels its order; 0 for none
	OnAccepted     func()        // called at a buyer's first 202; may be nil
	// WrapClient may wrap the buyers' shared HTTP client; may be nil.
	WrapClient func(*http.Client) *http.Client
}

// Run runs all buyers and returns their results. The error is that of the first buyer with a failed
// call. The other buyers still finish.
func Run(ctx context.Context, p Plan) (Report, error) {
	p = p.withDefaults()
	httpClient := apiclient.NewHTTP(p.Concurrency * p.ParallelPurchases)
	if p.CallTimeout > 0 {
		httpClient.Timeout = p.CallTimeout
	}
	defer httpClient.CloseIdleConnections()
	if p.WrapClient != nil {
		httpClient = p.WrapClient(httpClient)
	}
	var g errgroup.Group
	g.SetLimit(p.Concurrency)
	var mu sync.Mutex
	report := Report{Started: time.Now()}
	for i := range p.Buyers {
		spread := p.Spread * time.Duration(i) / time.Duration(p.Buyers)
		workers.Sleep(ctx, time.Until(report.Started.Add(spread)))
		id := p.FirstID + int64(i)
		g.Go(func() error {
			results, err := p.oneBuyer(ctx, id,
				apiclient.Client{Base: p.Bases[i%len(p.Bases)], HTTP: httpClient})
			mu.Lock()
			defer mu.Unlock()
			report.Results = append(report.Results, results...)
			if p.OnDone != nil {
				p.OnDone()
			}
			return err
		})
	}
	err := g.Wait()
	report.Took = time.Since(report.Started)
	return report, err
}

func (p Plan) withDefaults() Plan {
	p.Quantity, p.FirstID = max(1, p.Quantity), max(1, p.FirstID)
	p.ParallelPurchases = max(1, p.ParallelPurchases)
	if len(p.Bases) == 0 {
		p.Bases = []string{p.Base}
	}
	p.Patience = cmp.Or(p.Patience, 30*time.Second)
	return p
}

// oneBuyer runs the parallel purchases of one buyer.
func (p Plan) oneBuyer(ctx context.Context, id int64, c apiclient.Client) ([]Result, error) {
	token, err := p.Token(id)
	if err != nil {
		return nil, err
	}
	c.Token = token
	every := func(n int) bool { return n > 0 && id%int64(n) == 0 }
	b := buyer.Buyer{
		Client: c, ID: id, GoodsID: p.GoodsID, Quantity: p.Quantity, Patience: p.Patience,
		MaxPollInterval: p.MaxPollInterval, RetryErrors: p.RetryErrors, Bases: p.Bases,
		Repeats: p.Repeats, OnAccepted: p.OnAccepted,
		BuysAgain: every(p.BuysAgainEvery),
	}
	results := make([]Result, p.ParallelPurchases)
	var g errgroup.Group
	for i := range results {
		g.Go(func() (err error) {
			b := b
			b.OnCall = results[i].count
			results[i].Result, err = b.Buy(ctx)
			if err == nil && results[i].Status == "created" && every(p.CancelsEvery) {
				err = cancel(ctx, b, &results[i].Result)
			}
			return err
		})
	}
	return results, g.Wait()
}

// cancel cancels the order twice, because a repeated cancellation must answer the same.
func cancel(ctx context.Context, b buyer.Buyer, t *buyer.Result) error {
	until := time.Now().Add(b.Patience)
	for range 2 {
		a, err := b.CallWithRetry(ctx, t, until, "cancel", "/orders/"+t.OrderSn+"/cancel")
		switch {
		case err != nil || a.Status == 0 || a.Status >= 500:
			return err
		case a.Status == http.StatusOK:
			t.AddStatus("cancelled")
		default:
			t.AddStatus(a.Reason)
		}
	}
	return nil
}
