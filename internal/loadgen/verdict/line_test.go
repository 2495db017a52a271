package verdict

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/loadgen"
	"flashsale.dev/seckill/internal/loadgen/apiclient"
	"flashsale.dev/seckill/internal/loadgen/buyer"
)

// TestLine_FindsUnfairAdmissions checks a fair line of three positions and two units, of which the
// first returns. Each defect violates one rule.
func TestLine_FindsUnfairAdmissions(t *testing.T) {
	const life = 30 * time.Second
	start := time.Now()
	for rule, defect := range map[string]func(places []loadgen.Place){
		"":        func([]loadgen.Place) {},
		ruleOrder: func(p []loadgen.Place) { p[1].Until = p[0].Until.Add(-time.Second) },
		ruleInVain: func(p []loadgen.Place) {
			p[1].Outcome, p[1].OrderSn = buyer.SoldOut, ""
		},
		ruleIdle: func(p []loadgen.Place) {
			p[2].Seen, p[2].Until = p[2].Seen.Add(2*time.Second), p[2].Until.Add(2*time.Second)
		},
	} {
		t.Run(rule, func(t *testing.T) {
			place := func(position int64, called time.Duration, o buyer.Outcome) loadgen.Place {
				at := start.Add(called)
				p := loadgen.Place{Outcome: o, OrderSn: "sn"}
				p.Position, p.Seen, p.Until, p.State = position, at, at.Add(life), "admitted"
				if o == buyer.Won {
					p.Decided = at.Add(time.Second)
				}
				return p
			}
			places := []loadgen.Place{
				place(1, 0, buyer.Left), place(2, 0, buyer.Won), place(3, 5*time.Second, buyer.Won),
			}
			places[0].Left = start.Add(4500 * time.Millisecond)
			defect(places)
			j := &checker{
				Case:    Case{Plan: loadgen.Plan{Room: &loadgen.Room{Within: time.Second}}},
				Verdict: newVerdict(true),
			}
			j.Ledger = apiclient.Ledger{Total: 2}
			j.turns(places)
			j.returns(places, nil)
			require.Equal(t, rule == "", j.OK, "%v", j.Differences)
			for _, r := range j.Rules {
				require.Equal(t, r.Name != rule, r.OK, "%v", j.Differences)
			}
			require.Equal(t, 3, j.Line.Admitted)
		})
	}
}

// TestLine_PassedBuyerIsFound checks that a buyer who was never called violates the order.
func TestLine_PassedBuyerIsFound(t *testing.T) {
	j := &checker{Verdict: newVerdict(true)}
	passed, called := loadgen.Place{}, loadgen.Place{Outcome: buyer.Won}
	passed.Position, passed.State = 1, "over"
	called.Position, called.Seen, called.Until = 2, time.Now(), time.Now().Add(time.Second)
	j.turns([]loadgen.Place{passed, called})
	require.False(t, j.OK)
}
