package bench

import (
	"context"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/app/connect"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/testing/servers"
)

const (
	millionBuyers  = 1_000_000
	unitsOfMillion = 100_000
	// livePaths are those that nobody used yet: a minute's at 1,000 permits a second.
	livePaths = 60_000
)

// BenchmarkRedisMemory is what a sale with a million buyers costs Redis at its worst: every unit reserved, not one order
// confirmed or written, and a minute's paths unused; and again when the orders are written. Once is enough.
func BenchmarkRedisMemory(b *testing.B) {
	once(b, func() {
		server := servers.Redis(b)
		client := connect.Redis([]string{server.Addr()}, "")
		s := newRedisStore(b, client, 1)
		empty := usedMemory(b, client)
		outbox, sns := s.sellAll(b)
		for left := livePaths; left > 0; left -= reservation.MaxBatch {
			s.prepare(b, reservation.MaxBatch)
		}
		s.refuse(b)
		peak := usedMemory(b, client) - empty
		require.NoError(b, s.Confirmed(b.Context(), 1, outbox...))
		for len(sns) > 0 {
			n := min(len(sns), 500)
			_, err := s.Settle(b.Context(), 1, sns[:n])
			require.NoError(b, err)
			sns = sns[n:]
		}
		after := usedMemory(b, client) - empty
		b.ReportMetric(peak, "MB-peak")
		results.note("Redis: 1,000,000 buyers, 100,000 units, nothing written yet, 60,000 unused paths", "≤ 100 MB", "%.0f MB", peak)
		results.note("Redis: the same, all orders written", "–", "%.0f MB", after)
		require.NoError(b, client.Close())
	})
}

// once does what a second time would say nothing new of, however many rounds are asked for.
func once(b *testing.B, measure func()) {
	b.Helper()
	for first := true; b.Loop(); first = false {
		if first {
			measure()
		}
	}
}

// sellAll reserves every unit, and returns the outbox' entries and the orders.
func (s redisStore) sellAll(b *testing.B) (outbox, sns []string) {
	b.Helper()
	for sold := 0; sold < unitsOfMillion; {
		group := s.prepare(b, min(reservation.MaxBatch, unitsOfMillion-sold))
		g, err := s.Reserve(b.Context(), s.goodsID, 1, group)
		require.NoError(b, err)
		outbox = append(outbox, g.OutboxID)
		for i, v := range g.Verdicts {
			require.Equal(b, reservation.Taken, v.Code)
			sns = append(sns, group[i].OrderSn)
		}
		sold += len(group)
	}
	return outbox, sns
}

// refuse lets the rest of the million try paths that do not exist.
func (s redisStore) refuse(b *testing.B) {
	b.Helper()
	for refused := unitsOfMillion + livePaths; refused < millionBuyers; refused += reservation.MaxBatch {
		_, err := s.Reserve(b.Context(), s.goodsID, 1, wishes(b, reservation.MaxBatch))
		require.NoError(b, err)
	}
}

// usedMemory is what Redis' data take, in MB.
func usedMemory(b *testing.B, client redis.UniversalClient) float64 {
	b.Helper()
	text, err := client.Info(context.WithoutCancel(b.Context()), "memory").Result()
	require.NoError(b, err)
	_, rest, _ := strings.Cut(text, "used_memory:")
	number, _, _ := strings.Cut(rest, "\r\n")
	n, err := strconv.ParseFloat(number, 64)
	require.NoError(b, err)
	return n / 1e6
}

// BenchmarkAPIMemory is the API's resident memory under 2,000 connections that ask 100,000 times, and when it has had time to
// give memory back.
func BenchmarkAPIMemory(b *testing.B) {
	a := newArena(b)
	once(b, func() {
		goods := a.PutUp(b, 10_000, 1)
		requests, tokens := a.askers(b, goods, hundredThousand)
		before := resident(b, a.APIs[0].Pid(), "VmRSS")
		crowd(b, a.APIs[0].Addr, 2000, hundredThousand, func(c *client, i int) error {
			_, err := buy(c, requests[i], goods, tokens[i])
			return err
		})
		peak := resident(b, a.APIs[0].Pid(), "VmHWM")
		after, waited := peak, 0
		for ; waited < 40 && after > before*1.2; waited += 5 {
			time.Sleep(5 * time.Second)
			after = resident(b, a.APIs[0].Pid(), "VmRSS")
		}
		b.ReportMetric(peak, "MB-peak")
		results.note("API: 2,000 connections, 100,000 buyers at once", "≤ 512 MB (SECKILL_MEMORY_LIMIT)",
			"%.0f MB before, %.0f MB at the peak, %.0f MB %d s later", before, peak, after, waited)
	})
}

// resident reads a process' memory in MB: VmRSS now, VmHWM at its peak.
func resident(b *testing.B, pid int, name string) float64 {
	b.Helper()
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	require.NoError(b, err)
	_, rest, found := strings.Cut(string(text), name+":")
	require.True(b, found)
	fields := strings.Fields(rest)
	n, err := strconv.ParseFloat(fields[0], 64)
	require.NoError(b, err)
	return n * 1024 / 1e6
}
