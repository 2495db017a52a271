package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/loadgen/apiclient"
	"flashsale.dev/seckill/internal/loadgen/buyer"
	"flashsale.dev/seckill/internal/testing/buyers"
	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/must"
)

// ctl runs seckillctl against an installation and returns its exit code. If the command succeeds,
// ctl decodes its output into data.
func ctl(t *testing.T, r *installation.Installation, data any, args ...string) int {
	out, err := installation.Try(t, "seckillctl", []string{
		"SECKILL_MYSQL_DSN=" + r.DSN, "SECKILL_REDIS_ADDRS=" + r.Redis.Addr(), "SECKILL_AMQP_URL=" +
			r.AMQP,
	}, append(args, "-o", "json")...)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		t.Log(out)
		return exit.ExitCode()
	}
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal([]byte(out), data), out)
	return 0
}

func ctlRebuildsSale(t *testing.T, r *installation.Installation) {
	goods := r.PutUp(t, 50, 1)
	report := must.Get(buyers.Run(t.Context(), buyers.Plan{
		GoodsID: goods, Buyers: 20, Concurrency: 20, Token: r.BuyerToken,
		Patience: 30 * time.Second, CallTimeout: 5 * time.Second,
		Bases: []string{r.Base(0)},
	}))(t)
	require.Equal(t, 20, report.Count(buyer.Won))

	var built struct {
		EpochBefore, EpochAfter, Available, Lost int
		ShutSeconds                              float64
	}
	require.Equal(t, 2, ctl(t, r, nil, "rebuild", goods), "not confirmed with -yes")
	require.Equal(t, 3, ctl(t, r, nil, "rebuild", "404", "-yes"))
	require.Equal(t, 0, ctl(t, r, &built, "rebuild", goods, "-yes"))
	require.Equal(t, []int{1, 2, 30, 0},
		[]int{built.EpochBefore, built.EpochAfter, built.Available, built.Lost})
	require.Positive(t, built.ShutSeconds)
	var l apiclient.Ledger
	require.Equal(t, 0, ctl(t, r, &l, "ledger", goods))
	require.EqualValues(t, 2, l.Epoch)
	require.EqualValues(t, 30, l.Available)

	client := r.RedisClient(t)
	require.NoError(t, client.Set(t.Context(), "sk:{"+goods+"}:rebuild", "another",
		time.Minute).Err())
	require.Equal(t, 5, ctl(t, r, nil, "rebuild", goods, "-yes"))
	require.NoError(t, client.HIncrBy(t.Context(), "sk:{"+goods+"}", "avail", -3).Err())
	require.Equal(t, 4, ctl(t, r, nil, "ledger", goods), "the ledger lacks three units")
	require.NoError(t, client.Del(t.Context(), "sk:{"+goods+"}:rebuild").Err())
	require.Equal(t, 0, ctl(t, r, &built, "rebuild", goods, "-yes"))
	require.Equal(t, 0, ctl(t, r, &l, "ledger", goods), "the rebuild restores three units")
}

func ctlSetsLimiter(t *testing.T, r *installation.Installation) {
	goods := r.PutUp(t, 50, 1)
	var s struct {
		Source           string
		PermitsPerSecond float64
	}
	require.Equal(t, 2, ctl(t, r, nil, "limiter", "set", "randomPath", goods, "speed=3"))
	require.Equal(t, 3, ctl(t, r, nil, "limiter", "get", "none", goods))
	require.Equal(t, 0, ctl(t, r, &s, "limiter", "set", "randomPath", goods, "permitsPerSecond=7",
		"maxBurstSeconds=2"))
	require.InDelta(t, 7, s.PermitsPerSecond, 0)
	op := r.Operator(t)
	nodes := func() (changed int) {
		for i := range r.APIs {
			op.Base = r.Base(i)
			err := op.Do(context.WithoutCancel(t.Context()), http.MethodGet,
				"/admin/limiters/randomPath/"+goods, nil, &s)
			if err == nil && s.Source == "operator" && s.PermitsPerSecond == 7 {
				changed++
			}
		}
		return changed
	}
	require.Eventually(t, func() bool {
		return nodes() == len(r.APIs)
	}, time.Minute, 20*time.Millisecond)
	require.Equal(t, 2, ctl(t, r, nil, "limiter", "delete", "randomPath", goods),
		"not confirmed with -yes")
	require.Equal(t, 0, ctl(t, r, &struct{}{}, "limiter", "delete", "randomPath", goods, "-yes"))
	require.Eventually(t, func() bool { return nodes() == 0 }, time.Minute, 20*time.Millisecond)
}
