package gate

import (
	"context"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/ratelimit/rules"
)

// Want is one rule of several that a request must pass.
type Want struct {
	Rule string
	// Own is the request's own limit in place of the rule's, or nil.
	Own *ratelimit.Limit
}

// DecideAll asks several rules, in order: put those of the node's own memory
// first, they cost nothing. At the first that denies, those before it get their
// permits back, and its Result is the answer. Otherwise the answers are all
// allowed; WaitAll waits for the longest. Where a store is asked directly,
// Store.TakeEach decides several limits in one atomic step.
func (g *Gate) DecideAll(ctx context.Context, attrs rules.Attributes, n int64, wants ...Want) ([]Result, error) {
	passed := make([]Result, 0, len(wants))
	for _, want := range wants {
		out, err := g.decideWant(ctx, attrs, n, want)
		if err == nil && out.Allowed {
			passed = append(passed, out)
			continue
		}
		for i := range passed {
			passed[i].Refund()
		}
		if err != nil {
			return nil, err
		}
		return []Result{out}, nil
	}
	return passed, nil
}

func (g *Gate) decideWant(ctx context.Context, attrs rules.Attributes, n int64, want Want) (Result, error) {
	if want.Own == nil {
		return g.Decide(ctx, want.Rule, attrs, n)
	}
	return g.DecideWith(ctx, want.Rule, attrs, *want.Own, n)
}

// WaitAll waits until the permits of all outcomes are good, and gives back all
// of them when it can't: then it returns the outcome that stopped it, too.
func WaitAll(ctx context.Context, outcomes []Result) (*Result, error) {
	var longest *Result
	for i := range outcomes {
		if longest == nil || outcomes[i].Decision.Wait > longest.Decision.Wait {
			longest = &outcomes[i]
		}
	}
	if longest == nil {
		return nil, nil
	}
	if err := longest.Wait(ctx); err != nil {
		for i := range outcomes {
			if &outcomes[i] != longest {
				outcomes[i].Refund()
			}
		}
		return longest, err
	}
	return longest, nil
}
