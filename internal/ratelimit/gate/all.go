package gate

import (
	"context"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/ratelimit/rules"
)

// Check is one rule of several that a request must pass.
type Check struct {
	Rule string
	// Own is the request's own limit in place of the rule's, or nil.
	Own *ratelimit.Limit
}

// DecideAll checks several rules in order. Put rules of scope node first: they
// cost no call. At the first denial it refunds the permits of the rules before
// and returns that Result alone. Otherwise all results are allowed, one for each
// check; wait for them with WaitAll. Errors are those of Decide.
func (g *Gate) DecideAll(
	ctx context.Context, attrs rules.Attributes, n int64, checks ...Check,
) ([]Result, error) {
	passed := make([]Result, 0, len(checks))
	for _, check := range checks {
		res, err := g.decideOne(ctx, attrs, n, check)
		if err == nil && res.Allowed {
			passed = append(passed, res)
			continue
		}
		for i := range passed {
			passed[i].Refund()
		}
		if err != nil {
			return nil, err
		}
		return []Result{res}, nil
	}
	return passed, nil
}

func (g *Gate) decideOne(
	ctx context.Context, attrs rules.Attributes, n int64, check Check,
) (Result, error) {
	if check.Own == nil {
		return g.Decide(ctx, check.Rule, attrs, n)
	}
	return g.DecideWith(ctx, check.Rule, attrs, *check.Own, n)
}

// WaitAll waits until the permits of all results are good. On an error it refunds
// all of them and returns the result that failed, too. Errors are those of
// Result.Wait.
func WaitAll(ctx context.Context, results []Result) (*Result, error) {
	var longest *Result
	for i := range results {
		if longest == nil || results[i].Decision.Wait > longest.Decision.Wait {
			longest = &results[i]
		}
	}
	if longest == nil {
		return nil, nil
	}
	if err := longest.Wait(ctx); err != nil {
		for i := range results {
			if &results[i] != longest {
				results[i].Refund()
			}
		}
		return longest, err
	}
	return longest, nil
}
