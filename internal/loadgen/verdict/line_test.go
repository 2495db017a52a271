package verdict

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/loadgen"
	"flashsale.dev/seckill/internal/loadgen/apiclient"
	"flashsale.dev/seckill/internal/loadgen/buyer"
	"flashsale.dev/seckill/internal/waitingroom"
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
				p.Habit = buyer.Prompt
				p.Position, p.Seen, p.Until, p.State = position, at, at.Add(life), "admitted"
				if o == buyer.Won {
					p.Tried, p.Decided = at, at.Add(time.Second)
				} else {
					p.Habit = buyer.Leaver
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
			j.checkTurns(places)
			rate := apiclient.Rate{PermitsPerSecond: 1000, MaxBurstSeconds: 1}
			j.measureReturns(places, nil, rate)
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
	j.checkTurns([]loadgen.Place{passed, called})
	require.False(t, j.OK)
}

// lineChecker returns a checker of a waiting room with a number of units.
func lineChecker(units int64) *checker {
	j := &checker{
		Case:    Case{Plan: loadgen.Plan{Room: &loadgen.Room{Within: time.Second}}},
		Verdict: newVerdict(true),
	}
	j.Ledger.Total = units
	return j
}

// violated lists the rules that a verdict found violated.
func violated(v Verdict) (names []string) {
	for _, r := range v.Rules {
		if !r.OK {
			names = append(names, r.Name)
		}
	}
	return names
}

// admitted returns a place that was called at a time for 30 s, and won at once.
func admitted(position int64, at time.Time) loadgen.Place {
	p := loadgen.Place{BuyerID: position, Outcome: buyer.Won, OrderSn: fmt.Sprint(position)}
	p.Habit, p.State, p.Number, p.Position = buyer.Prompt, "admitted", position, position
	p.Joined, p.Seen, p.Until, p.Tried, p.Decided = at, at, at.Add(30*time.Second), at, at
	return p
}

func TestLine_RetriedPurchaseIsInVainIfItBeganInTime(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		change   func(j *checker, p *loadgen.Place)
		violates bool
	}{
		"refused until after the turn": {func(*checker, *loadgen.Place) {}, true},
		"calls were as slow as the turn is long": {func(j *checker, _ *loadgen.Place) {
			j.Result.Steps = []loadgen.Step{
				{Step: buyer.StepPath, Max: 15_000}, {Step: buyer.StepBuy, Max: 15_000},
			}
		}, true},
		"began in the last moments": {func(_ *checker, p *loadgen.Place) {
			p.Tried = p.Until.Add(-purchaseTime)
		}, false},
		"began in the last moments, refused within the turn": {func(_ *checker, p *loadgen.Place) {
			p.Tried, p.Decided = p.Until.Add(-purchaseTime), p.Until.Add(-time.Millisecond)
		}, true},
		"read too late": {func(_ *checker, p *loadgen.Place) {
			p.Tried = p.Until.Add(time.Millisecond)
		}, false},
		"the run was cut short": {func(j *checker, p *loadgen.Place) {
			j.CutShort, p.Decided = true, time.Time{}
		}, false},
		"leaver":  {func(_ *checker, p *loadgen.Place) { p.Habit = buyer.Leaver }, false},
		"sleeper": {func(_ *checker, p *loadgen.Place) { p.Habit = buyer.Sleeper }, false},
		"eager":   {func(_ *checker, p *loadgen.Place) { p.Habit = buyer.Eager }, true},
		"unpaid":  {func(_ *checker, p *loadgen.Place) { p.Habit = buyer.Unpaid }, true},
		"no answer": {func(_ *checker, p *loadgen.Place) {
			p.Decided = time.Time{}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			j, p := lineChecker(1), admitted(1, now)
			p.Outcome, p.OrderSn, p.Decided = buyer.GaveUp, "", p.Until.Add(time.Second)
			c.change(j, &p)
			j.checkTurns([]loadgen.Place{p})
			require.Equal(t, !c.violates, j.OK, "%v", j.Differences)
		})
	}
}

// TestLine_MissedTurnIsFoundIfItCannotBeMissed checks a buyer who never read an admission, next to
// one whose admission lasts 30 s.
func TestLine_MissedTurnIsFoundIfItCannotBeMissed(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		habit    buyer.Habit
		life     time.Duration
		slowest  float64 // reading, in ms
		violates bool
	}{
		"prompt, long turn":                {buyer.Prompt, 30 * time.Second, 100, true},
		"prompt, short turn":               {buyer.Prompt, 3 * time.Second, 100, false},
		"prompt, long turn, slow readings": {buyer.Prompt, 30 * time.Second, 25_000, false},
		"eager, short turn":                {buyer.Eager, 3 * time.Second, 100, true},
		"nobody was admitted":              {buyer.Prompt, 0, 100, true},
	} {
		t.Run(name, func(t *testing.T) {
			j, first, missed := lineChecker(2), admitted(1, now), loadgen.Place{Outcome: buyer.Missed}
			j.Result.Steps = []loadgen.Step{{Step: buyer.StepPlace, Max: c.slowest}}
			missed.Habit, missed.Position, missed.State = c.habit, 2, "missed"
			first.Until = first.Seen.Add(c.life)
			places := []loadgen.Place{first, missed}
			if c.life == 0 {
				places = places[1:]
			}
			j.checkTurns(places)
			require.Equal(t, 1, j.Line.Unseen)
			require.Equal(t, !c.violates, j.OK, "%v", j.Differences)
		})
	}
}

// TestLine_RateAndEmptyLineDelayNoUnit plays lines that offer each unit as soon as possible, and
// the same lines with a delay of 3 s. The first buyer leaves at once.
func TestLine_RateAndEmptyLineDelayNoUnit(t *testing.T) {
	start := time.Now()
	for name, c := range map[string]struct {
		units, buyers int
		rate          float64       // of the sale
		burst         float64       // of the sale, in seconds
		arrivals      time.Duration // between two buyers; 0: all wait at the start
	}{
		"the burst, then the rate": {3000, 3100, 1000, 1, 0},
		"a low rate":               {500, 520, 100, 1, 0},
		"a long burst":             {5, 6, 1, 10, 0},
		"no burst":                 {500, 520, 100, 0, 0},
		"buyers arrive slowly":     {50, 55, 1000, 1, 200 * time.Millisecond},
	} {
		for _, late := range []time.Duration{0, 3 * time.Second} {
			t.Run(fmt.Sprint(name, late), func(t *testing.T) {
				j := lineChecker(int64(c.units))
				var places []loadgen.Place
				for i := range c.buyers {
					joined := start.Add(time.Duration(i) * c.arrivals)
					permit := start.Add(time.Duration(max(0, float64(i)+1-c.rate*max(c.burst, .2)) /
						c.rate * float64(time.Second)))
					at := joined
					if permit.After(at) {
						at = permit
					}
					if i >= c.units {
						at = at.Add(late)
					}
					p := admitted(int64(i+1), at)
					p.Joined = joined
					if i < c.buyers-c.units {
						p.Habit, p.Outcome, p.OrderSn, p.Left = buyer.Leaver, buyer.Left, "", at
					}
					places = append(places, p)
				}
				j.measureReturns(places, nil,
					apiclient.Rate{PermitsPerSecond: c.rate, MaxBurstSeconds: c.burst})
				if late == 0 {
					require.True(t, j.OK, "%v", j.Differences)
					require.Less(t, j.Line.ReturnMax, 1.0)
				} else {
					require.Equal(t, []string{ruleIdle}, violated(j.Verdict))
				}
				require.Equal(t, c.buyers-c.units, j.Line.Returned)
			})
		}
	}
}

// TestLine_FindsWrongDrawAndUnsoldUnits checks a line against the public status of a waiting room.
func TestLine_FindsWrongDrawAndUnsoldUnits(t *testing.T) {
	var seed waitingroom.Seed
	status := buyer.Line{Published: waitingroom.Published{
		Commitment: seed.Commitment(), Seed: seed.Hex(), Digest: "digest", Size: 3,
	}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/admin/") {
			answer(w, 200, map[string]any{"rate": apiclient.Rate{
				PermitsPerSecond: 1000, MaxBurstSeconds: 1,
			}})
			return
		}
		shown := status
		if strings.Contains(r.URL.Path, "/undrawn/") {
			shown.Seed, shown.Digest, shown.Size = "", "", 0
		}
		answer(w, 200, shown)
	}))
	defer server.Close()
	httpClient := apiclient.NewHTTP(1)
	defer httpClient.CloseIdleConnections()
	draw := waitingroom.NewDraw(seed, []byte("digest"), 3)
	for name, c := range map[string]struct {
		change func(j *checker, places []loadgen.Place)
		rules  []string
	}{
		"a fair line": {func(*checker, []loadgen.Place) {}, nil},
		"a position is not the draw's": {func(_ *checker, p []loadgen.Place) {
			p[0].Number, p[1].Number = p[1].Number, p[0].Number
		}, []string{ruleDraw}},
		"a number was given twice": {func(_ *checker, p []loadgen.Place) {
			p[2].Number, p[2].Position = p[1].Number, p[1].Position
		}, []string{ruleDraw}},
		"the commitment changed": {func(j *checker, _ []loadgen.Place) {
			j.Result.Commitment = "another"
		}, []string{ruleDraw}},
		"a unit is left and a buyer waited": {func(j *checker, _ []loadgen.Place) {
			j.Ledger.Available = 1
		}, []string{ruleUnsold}},
		"a unit is left and the run was cut short": {func(j *checker, _ []loadgen.Place) {
			j.Ledger.Available, j.CutShort = 1, true
		}, nil},
		"the run was cut short before the draw": {func(j *checker, _ []loadgen.Place) {
			j.CutShort, j.Plan.GoodsID, j.Result.Places = true, "undrawn", nil
		}, nil},
		"the draw was not published": {func(j *checker, _ []loadgen.Place) {
			j.Plan.GoodsID = "undrawn"
		}, []string{ruleDraw}},
		"a unit is left and nobody waited": {func(j *checker, p []loadgen.Place) {
			j.Ledger.Available, p[2].State, p[2].Outcome = 1, "left", buyer.Left
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			j, now := lineChecker(2), time.Now()
			j.Merchant = apiclient.Client{Base: server.URL, HTTP: httpClient}
			j.Plan.GoodsID, j.Limit, j.Exclusive = "9", 1, true
			j.Result.Commitment = seed.Commitment()
			waited := loadgen.Place{BuyerID: 3, Outcome: buyer.SoldOut}
			waited.Position, waited.State = 3, "over"
			places := []loadgen.Place{admitted(1, now), admitted(2, now), waited}
			for i := range places {
				places[i].Number = draw.Number(places[i].Position)
			}
			j.Result.Places = places
			c.change(j, places)
			j.checkLine(t.Context(), nil)
			require.Equal(t, c.rules, violated(j.Verdict), "%v", j.Differences)
		})
	}
}
