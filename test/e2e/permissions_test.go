package e2e

import (
	"database/sql"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/must"
)

// TestPermissions_RedisUserWithoutINFO takes INFO from the programs' Redis user and empties Redis.
// The programs then can't load a sale. They must say so, and begin no epoch until they can.
func TestPermissions_RedisUserWithoutINFO(t *testing.T) {
	r := installation.Start(t, suite, installation.Options{
		Redis: []string{"user shop on >secret ~* &* +@all -@dangerous +info"},
		Env:   []string{"SECKILL_REDIS_USERNAME=shop", "SECKILL_REDIS_PASSWORD=secret"},
	})
	goods := r.PutUp(t, 5, 1)
	admin := r.RedisNode(t)
	allow := func(rule string) {
		require.NoError(t, admin.Do(t.Context(), "ACL", "SETUSER", "shop", rule).Err())
	}
	allow("-info")
	require.NoError(t, admin.FlushAll(t.Context()).Err())
	for _, p := range []*installation.Program{r.APIs[0], r.Consumers[0]} {
		require.Eventually(t, func() bool {
			status, redis, _ := readyOf(p.Addr)
			return status == http.StatusServiceUnavailable &&
				redis == "the ACL user may not run INFO: ACL SETUSER its name +info"
		}, time.Minute, 10*time.Millisecond, "the remedy of /readyz")
		require.Equal(t, 1, p.CountLogLines("ERROR", "ACL SETUSER shop +info", r.Redis.Addr()))
	}
	before := installation.RedisCalls(t, admin)
	require.Eventually(t, func() bool { return installation.RedisCalls(t, admin) > before+30 },
		time.Minute, 10*time.Millisecond, "the rebuilder checks the sale again and again")
	db, epoch := must.Get(sql.Open("mysql", r.DSN))(t), int64(0)
	defer db.Close()
	require.NoError(t, db.QueryRowContext(t.Context(),
		"SELECT epoch FROM sales WHERE goods_id = ?", goods).Scan(&epoch))
	require.EqualValues(t, 1, epoch, "no epoch begins that cannot be loaded")
	allow("+info")
	require.Eventually(t, func() bool {
		l, err := r.Merchant(t).Ledger(t.Context(), goods)
		return err == nil && l.Available == 5
	}, time.Minute, 10*time.Millisecond)
	require.Eventually(t, func() bool {
		status, redis, err := readyOf(r.APIs[0].Addr)
		return err == nil && status == http.StatusOK && redis == "ok"
	}, time.Minute, 10*time.Millisecond)
}

// readyOf returns the status of a program's /readyz and the state of Redis in it.
func readyOf(addr string) (status int, redis string, err error) {
	resp, err := http.Get("http://" + addr + "/readyz")
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	var answer struct {
		Data struct{ Parts map[string]string }
	}
	err = json.NewDecoder(resp.Body).Decode(&answer)
	return resp.StatusCode, answer.Data.Parts["redis"], err
}
