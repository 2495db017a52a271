package main

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/rebuild"
	"flashsale.dev/seckill/internal/ordersn"
	"flashsale.dev/seckill/internal/redisstore"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/seckill/salechange"
	"flashsale.dev/seckill/internal/sqlstore"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
)

// TestDeadLetters_RequeueWritesTheOrderAndDiscardEndsIt resolves one dead letter by each command,
// and checks what the commands refuse. The list shows no name of a buyer.
func TestDeadLetters_RequeueWritesTheOrderAndDiscardEndsIt(t *testing.T) {
	const secret = "an order secret that only this test knows"
	ctx, now := t.Context(), time.Now()
	dsn, addr := "sqlite:"+filepath.Join(t.TempDir(), "s.db"), servers.Redis(t).Addr()
	ctl := func(args ...string) (string, error) {
		var out strings.Builder
		err := run(ctx, args, nil, &out, io.Discard)
		return out.String(), err
	}
	must.Get(ctl("migrate", "--mysql-dsn", dsn))(t)
	store := must.Get(sqlstore.Open(ctx, dsn, ""))(t)
	defer store.Close()
	client := redis.NewUniversalClient(&redis.UniversalOptions{Addrs: []string{addr}})
	defer client.Close()
	sale := must.Get(store.CreateSale(ctx, seckill.NewSale{
		Title: "tea", Stock: 5, PerBuyerLimit: 2, StartAt: now, EndAt: now.Add(time.Hour),
		Rate: seckill.DefaultRate(),
	}.Draft("1", now), salechange.IdempotencyKey{}))(t)
	opener := rebuild.Opener{Store: store, Redis: redisstore.New(client, redisstore.Options{})}
	must.Get(opener.Open(ctx, sale.GoodsID, rebuild.FirstToken))(t)
	for buyer := range int64(2) {
		sn := ordersn.NewKeys([]byte(secret)).Issue(sale.GoodsID, fmt.Sprint(buyer+1), now).String()
		line := reservation.OrderLine{
			OrderSn: sn, BuyerID: fmt.Sprint(buyer + 1), Quantity: 1, Epoch: 1, Name: "Ann",
		}
		must.Get(store.WriteFailed(ctx, line,
			order.DeadLetter{GoodsID: sale.GoodsID, Reason: order.FailedUnwritten}, now))(t)
	}

	out := must.Get(ctl("dead-letters", "list", "-o", "json", "--mysql-dsn", dsn))(t)
	require.NotContains(t, out, `"Ann`)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	require.Len(t, lines, 2)
	var first, second order.DeadLetter
	require.NoError(t, json.Unmarshal([]byte(lines[0]), &first))
	require.NoError(t, json.Unmarshal([]byte(lines[1]), &second))
	requeue := []string{
		"dead-letters", "requeue", first.ID, "--mysql-dsn", dsn, "--redis-addrs", addr,
		"--order-secret", secret,
	}
	out = must.Get(ctl(requeue...))(t)
	require.Equal(t, first.OrderSn+" is created\n", out)
	_, err := ctl(requeue...)
	require.ErrorContains(t, err, "NOT_FOUND")
	t.Setenv("SECKILL_REDIS_WAIT_REPLICAS", "1")
	_, err = ctl(slices.Insert(slices.Clone(requeue), 3, second.ID)...)
	require.ErrorContains(t, err, first.ID+": NOT_FOUND")
	require.ErrorContains(t, err, second.ID+": UNAVAILABLE", "no replica has the units")
	var exit *exitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, codeFailed, exit.ExitCode(), "the second may succeed later")
	_, err = ctl("dead-letters", "discard", second.ID, "--mysql-dsn", dsn)
	require.ErrorContains(t, err, "not confirmed")
	out, err = ctl("dead-letters", "discard", first.ID, second.ID, "-yes", "--mysql-dsn", dsn)
	require.Equal(t, "discarded "+second.ID+"\n", out, "also after the first is refused")
	require.ErrorIs(t, err, order.ErrNoSuchDeadLetter)
	require.ErrorAs(t, err, &exit)
	require.Equal(t, codeRefused, exit.ExitCode())
	out = must.Get(ctl("dead-letters", "list", "--mysql-dsn", dsn))(t)
	require.Empty(t, out)
}

// TestDeadLetters_RequeueWithoutASecretIsAWrongCommandLine checks that no server is asked, and that
// the exit code does not call for another try.
func TestDeadLetters_RequeueWithoutASecretIsAWrongCommandLine(t *testing.T) {
	t.Setenv("SECKILL_JWT_SECRET", "")
	t.Setenv("SECKILL_ORDER_SECRET", "")
	err := run(t.Context(), []string{"dead-letters", "requeue", "1"}, nil, io.Discard, io.Discard)
	require.ErrorContains(t, err, "SECKILL_ORDER_SECRET")
	var exit *exitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, codeUsage, exit.ExitCode())
}
