package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/loadgen"
	"flashsale.dev/seckill/internal/loadgen/apiclient"
	"flashsale.dev/seckill/internal/loadgen/buyer"
	"flashsale.dev/seckill/internal/loadgen/verdict"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/installation"
)

// roomFault is a failure while buyers wait in a line.
type roomFault struct {
	name    string
	options installation.Options
	inject  func(t *testing.T, r *run)
	// overtakes: Redis may lose numbers. Their buyers are called next when they show their tickets,
	// which may be after others.
	overtakes bool
}

func roomFaults() []roomFault {
	lossy := func(name string, o installation.Options, inject func(*testing.T, *run)) roomFault {
		return roomFault{name: name, options: o, inject: inject, overtakes: true}
	}
	sleep := func(program func(r *run) pausable) func(*testing.T, *run) {
		return func(t *testing.T, r *run) { pause(t, program(r), 8*time.Second) }
	}
	return []roomFault{
		lossy("room-redis-flushall", installation.Options{}, flushAll),
		lossy("room-redis-killed", installation.Options{}, killRedis),
		lossy("room-redis-failover", installation.Options{Failover: true}, func(t *testing.T, r *run) {
			delayReplica(t, r)
			time.Sleep(2 * replicaLag)
			r.promoteReplica(t)
		}),
		{name: "room-admitter-killed", inject: func(t *testing.T, r *run) {
			kill(t, r.Consumers[:1])
			time.Sleep(2 * time.Second)
			start(t, r.Consumers[:1])
		}},
		{name: "room-admitter-asleep", inject: sleep(func(r *run) pausable {
			return r.Consumers[0]
		})},
		{name: "room-api-killed", inject: func(t *testing.T, r *run) {
			kill(t, r.APIs[:1])
			start(t, r.APIs[:1])
		}},
	}
}

// isRoomFault reports whether TestRooms has a fault of this name.
func isRoomFault(name string) bool {
	return slices.ContainsFunc(roomFaults(), func(f roomFault) bool { return f.name == name })
}

// roomStill bounds the time for which a line may stand still while units and buyers are there.
const roomStill = 10 * time.Second

// TestRooms injects faults while buyers wait in a line. No number is given twice, nobody who waits
// loses the place, nobody is admitted in vain, and every unit is sold.
func TestRooms(t *testing.T) {
	names := *namesFlag
	if names == "" {
		names = "room-redis-flushall"
	}
	for _, f := range roomFaults() {
		if names != "all" && !slices.Contains(strings.Split(names, ","), f.name) {
			continue
		}
		for seed := *seedFlag; seed < *seedFlag+*seedsFlag; seed++ {
			t.Run(fmt.Sprintf("%s/%d", f.name, seed), func(t *testing.T) { f.execute(t, seed) })
		}
	}
}

func (f roomFault) execute(t *testing.T, seed uint64) {
	const units, people = 30, 240
	o := f.options
	o.APIs, o.Consumers = 2, 2
	o.Env = append(slices.Clone(o.Env), "SECKILL_ADMISSION_TIMEOUT=3s")
	r := &run{rng: rand.New(rand.NewPCG(seed, 0)), Installation: installation.Start(t, suite, o)}
	merchant := r.Merchant(t)
	start := time.Now().UTC().Add(4 * time.Second).Truncate(time.Millisecond)
	var err error
	r.goods, err = merchant.PutUp(t.Context(), apiclient.NewSale{
		Title: "a line", Price: 1, Stock: units, PerBuyerLimit: 1, StartAt: start,
		EndAt: start.Add(time.Hour), Admission: string(seckill.ByWaitingRoom),
	})
	require.NoError(t, err)
	ended := make(chan loadgen.Result, 1)
	plan := loadgen.Plan{
		Bases: r.Bases(), GoodsID: r.goods, HTTP: apiclient.NewLoopbackHTTP(people),
		Token: r.BuyerToken, Buyers: people, FirstID: 1000, Rate: 80, Seed: seed,
		Patience: time.Minute,
		Room:     &loadgen.Room{Eager: .1, Leavers: .2, Sleepers: .2, Within: roomStill},
	}
	plan.HTTP.Timeout = 3 * time.Second
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	go func() { ended <- loadgen.Run(ctx, plan) }()
	time.Sleep(r.randomSeconds(2, 9)) // before the draw, at it, or after it
	f.inject(t, r)
	result := <-ended
	require.NoError(t, ctx.Err(), "the line stands still")
	checking, done := context.WithTimeout(t.Context(), time.Minute)
	defer done()
	v := verdict.Check(checking, verdict.Case{
		Plan: plan, Result: result, Merchant: merchant, Stock: units, Limit: 1, Exclusive: true,
	})
	t.Logf("%s, seed %d: %+v, outcomes %v", f.name, seed, *v.Line, result.Outcomes)
	for _, d := range v.Differences {
		if f.overtakes && strings.HasPrefix(d, "buyers were admitted in the order") {
			t.Logf("after a loss: %s", d)
			continue
		}
		t.Error(d)
	}
	require.Equal(t, units, v.Orders["paid"], "%v", v.Orders)
	require.Zero(t, result.Count(buyer.GaveUp), "buyers without a decision")
}
