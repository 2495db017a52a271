package capacity

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func builtInCosts(t require.TestingT) Calibration {
	c, err := BuiltIn()
	require.NoError(t, err)
	return c
}

func planned(t require.TestingT, s Sale) Plan {
	p, err := Make(s, builtInCosts(t))
	require.NoError(t, err)
	return p
}

func TestTheBuiltInCalibrationSaysWhereItIsFrom(t *testing.T) {
	c := builtInCosts(t)
	require.NotEmpty(t, c.Provenance.Machine)
	require.NotEmpty(t, c.Provenance.Date)
	require.NotEmpty(t, c.Provenance.Command)
}

// aSale is any that makes sense, small enough to be quick.
func aSale(t *rapid.T) Sale {
	s := Default()
	s.Buyers = rapid.Int64Range(1, 5_000_000).Draw(t, "buyers")
	s.Units = rapid.Int64Range(1, 1_000_000).Draw(t, "units")
	s.Quantity = rapid.Int64Range(1, 5).Draw(t, "quantity")
	s.Shape = rapid.SampledFrom([]Shape{AtOnce, Even, Ramp, Normal}).Draw(t, "shape")
	s.Over = time.Duration(rapid.IntRange(1, 600).Draw(t, "over")) * time.Second
	s.Think = time.Duration(rapid.IntRange(0, 5000).Draw(t, "think")) * time.Millisecond
	s.Retries = rapid.IntRange(0, 20).Draw(t, "retries")
	s.Permits = rapid.Float64Range(10, 1e6).Draw(t, "permits")
	s.Streams = rapid.Float64Range(0, 1).Draw(t, "streams")
	return s
}

// Everybody who comes is told something, once at the end; what is taken is written; nothing is sold that is not there.
func TestNobodyIsLostInTheFlow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := aSale(t)
		p := planned(t, s)
		near := func(want, got float64, what string) {
			require.InDelta(t, want, got, 1+want/1000, what)
		}
		near(float64(s.Buyers), p.Total(Paths)+p.Total(Refused)+p.GaveUp, "buyers: a path, sold out, or gave up")
		near(p.Total(Paths), p.Total(Purchases)+p.Total(Lost), "paths: bought, or too late")
		near(p.Total(Purchases), p.Total(Written), "orders written")
		near(float64(s.Units), p.Total(Purchases)*float64(s.Quantity)+p.Unsold, "units")
		near(p.Total(Purchases)*s.Streams, p.Total(Streams), "streams")
		near(float64(s.Buyers)*s.Polls, p.Total(Pages), "looks at the page")
		require.GreaterOrEqual(t, p.LastRow, p.SoldOut)
		everyFigure(t, p)
	})
}

// everyFigure checks that no figure is negative or not a number, and that there is always somebody to do the work.
func everyFigure(t *rapid.T, p Plan) {
	figures := []float64{
		p.API.Seconds, p.API.Peak, p.API.NodeMB, p.Redis.Seconds, p.Redis.Calls, p.Redis.WorstMB, p.Rabbit.Messages, p.Rabbit.QueueMB,
		p.Consumer.Seconds, p.MySQL.Seconds, p.MySQL.Transactions, p.MySQL.DataMB,
	}
	for _, h := range p.Hops {
		figures = append(figures, h.MBTo, h.MBFrom, h.To, h.From)
	}
	for _, l := range p.Limits {
		figures = append(figures, l.Used)
	}
	for i, x := range figures {
		require.False(t, math.IsNaN(x) || math.IsInf(x, 0) || x < 0, "figure %d is %v", i, x)
	}
	require.GreaterOrEqual(t, p.API.Nodes, 2)
	require.GreaterOrEqual(t, p.Redis.Shards, 1)
	require.LessOrEqual(t, p.Rabbit.Messages, p.Total(Purchases)+1)
	var text strings.Builder
	require.NoError(t, p.Text(&text))
	require.NotContains(t, text.String(), "NaN")
}

// The limiter of a plan lets through what the contract's does: burst and rate × time, with what may be booked ahead.
func TestPathsKeepToTheRate(t *testing.T) {
	s := Default()
	s.Buyers, s.Units, s.Shape, s.Retries = 1_000_000, 1_000_000, Even, 0
	for _, rate := range []float64{100, 1000, 20_000} {
		s.Permits = rate
		p := planned(t, s)
		require.InEpsilon(t, rate*(1+s.Over.Seconds()+1), p.Total(Paths), 0.01, "of rate %v", rate)
	}
}

// Who comes as a list says comes so: an even list is the even shape, and nobody comes where it has nothing.
func TestBuyersComeAsAListSays(t *testing.T) {
	s := Default()
	s.Shape, s.Over, s.Polls, s.Permits = Even, 8*time.Second, 0, 1e6
	even := planned(t, s)
	s.Shape, s.Come = Given, []float64{5, 5, 5, 5}
	given := planned(t, s)
	require.InEpsilon(t, even.API.Seconds, given.API.Seconds, 0.01)
	require.InEpsilon(t, even.Stages[3].Peak, given.Stages[3].Peak, 0.02)
	s.Come = []float64{0, 0, 1, 0}
	require.InEpsilon(t, 4*even.SoldOut/4+4, planned(t, s).SoldOut, 0.35, "nobody comes for four seconds")
	s.Come = []float64{0, -1}
	require.Error(t, s.Check())
}

func TestAtOnceIsAnsweredWithinTheBudget(t *testing.T) {
	s := Default()
	s.Shape, s.Retries, s.Polls, s.Budget = AtOnce, 0, 0, 500*time.Millisecond
	s.Units, s.Permits = 1, 1e6
	p := planned(t, s)
	asked := p.Stages[2].Peak + p.Stages[3].Peak
	require.InDelta(t, 200_000, asked, 6000, "100,000 buyers in half a second")
}

// A sale that sells faster than one writer writes is held back, where the backlog grows older than is allowed.
func TestABacklogHoldsTheSaleBack(t *testing.T) {
	s := Default()
	s.Buyers, s.Units, s.Permits, s.Shape, s.Over, s.Think = 30_000_000, 20_000_000, 1e6, Even, 20*time.Second, 0
	s.Land.Buckets = 1
	held := planned(t, s)
	require.InDelta(t, held.MySQL.Fastest*10, held.Backlog, held.MySQL.Fastest/2, "ten seconds' worth")
	s.Land.BacklogAge = 0
	free := planned(t, s)
	require.Greater(t, free.Backlog, 3*held.Backlog)
	require.Less(t, free.SoldOut, held.SoldOut)
	s.Land.Buckets, s.Land.BacklogAge = 64, 10*time.Second
	split := planned(t, s)
	require.Equal(t, 4, split.Consumer.Active, "a writer for each queue")
	require.Less(t, split.SoldOut, held.SoldOut, "four writers keep up with more")
}

// The formula of a group's size, against a line that is played.
func TestGroupsAreAsLongAsALineThatIsPlayed(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, perSecond := range []float64{100, 1000, 5000, 20_000} {
		trip := Sized{Call: 300, Each: 10}
		want := playLine(rng, perSecond, trip)
		require.InEpsilon(t, want, group(perSecond, trip), 0.08, "%v a second", perSecond)
	}
	require.InDelta(t, mostInGroup, group(1e6, Sized{Call: 1000, Each: 10}), 0.01)
}

// playLine lets travellers come by chance and go on trips, and gives the mean group.
func playLine(rng *rand.Rand, perSecond float64, trip Sized) float64 {
	now, next, travelled, left := 0.0, 0.0, 0, 0
	come := func() float64 { return rng.ExpFloat64() / perSecond * 1e6 }
	for next = come(); left < 20_000; left++ {
		now = max(now, next)
		aboard := 0
		for next <= now && aboard < mostInGroup {
			aboard++
			next += come()
		}
		travelled += aboard
		now += trip.Of(1, float64(aboard))
	}
	return float64(travelled) / float64(left)
}

func TestASlowerMachineNeedsMore(t *testing.T) {
	s := Default()
	s.Permits, s.Land.Nodes = 1e5, 4
	quick := planned(t, s)
	s.Land.Factor = 3
	slow := planned(t, s)
	require.Greater(t, slow.API.Seconds, 2*quick.API.Seconds)
	require.InDelta(t, quick.MySQL.DataMB, slow.MySQL.DataMB, quick.MySQL.DataMB/1000, "bytes stay")
}

func TestAFullShardIsSplit(t *testing.T) {
	s := Default()
	s.Buyers, s.Units, s.Shape, s.Over, s.Permits = 10_000_000, 10_000_000, Even, 10*time.Second, 1e6
	s.Land.BacklogAge = 0
	p := planned(t, s)
	require.Greater(t, p.Redis.Shards, 1)
	require.LessOrEqual(t, p.Redis.Peak/float64(p.Redis.Shards), 0.61)
}

func TestWhatIsWrongIsToldAtOnce(t *testing.T) {
	s := Default()
	s.Buyers, s.Streams, s.Shape, s.Permits = 0, 2, "flat", math.NaN()
	_, err := Make(s, builtInCosts(t))
	for _, word := range []string{"buyers", "streams", "shape", "permits"} {
		require.ErrorContains(t, err, word)
	}
	_, err = ParseCalibration([]byte(`{"api": {}}`))
	require.ErrorContains(t, err, "must be above 0")
	_, err = ParseCalibration([]byte(`{`))
	require.Error(t, err)
}

func TestFiguresForPeople(t *testing.T) {
	for want, x := range map[string]float64{
		"0": 0, "1": 1, "0.123": 0.12345, "1.5": 1.5, "99.9": 99.94, "123": 123.4, "1,230": 1234, "12,300,000": 12_345_678, "100": 99.96,
	} {
		require.Equal(t, want, short(x))
	}
	require.Equal(t, "1.23 G", scaled(1.234e9))
	require.Equal(t, "60 %", times(0.6))
	require.Equal(t, "12.3 ×", times(12.34))
}

func TestLooksAreSharedWhereManyAsk(t *testing.T) {
	const trip = 50e-6
	require.Zero(t, looks(0, trip))
	require.InDelta(t, 1, looks(1, trip), 0.1, "who asks alone looks alone")
	require.InDelta(t, 100, looks(100, trip), 5)
	require.InDelta(t, renewals, looks(1e6, trip), 1, "one renews, the others are told")
	require.Less(t, looks(10_000, trip), looks(2000, trip), "the more there are, the sooner a look is shared")
}
