package bench

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/app/connect"
	"flashsale.dev/seckill/internal/config"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
)

const (
	millionBuyers  = 1_000_000
	unitsOfMillion = 100_000
)

// once measures in the first round only, because later rounds give the same figure.
func once(b *testing.B, measure func()) {
	b.Helper()
	for first := true; b.Loop(); first = false {
		if first {
			measure()
		}
	}
}

// BenchmarkRedisMemory measures what a sale with a million buyers costs Redis at its worst: every
// unit reserved, no order confirmed or written. It measures again after the orders are written.
func BenchmarkRedisMemory(b *testing.B) {
	once(b, func() {
		client := connect.RedisOf(config.Redis{Addrs: []string{servers.Redis(b).Addr()}})
		s := newSaleStore(b, client, 1, unitsOfMillion)
		empty := s.usedMB(b)
		outbox, sns := s.sell(b, unitsOfMillion)
		// The rest of the million ask for units that are gone.
		refused := unitsOfMillion
		for ; refused < millionBuyers; refused += reservation.MaxBatch {
			must.Get(s.Reserve(b.Context(), s.goodsID, 1, newBuyers(b, reservation.MaxBatch)))(b)
		}
		peak := s.usedMB(b) - empty
		s.written(b, outbox, sns)
		after := s.usedMB(b) - empty
		b.ReportMetric(peak, "MB-peak")
		results.note("Redis: 1,000,000 buyers, 100,000 units, nothing written yet",
			"≤ 60 MB", "%.0f MB", peak)
		results.note("Redis: the same, all orders written", "–", "%.0f MB", after)
		require.NoError(b, client.Close())
	})
}

// sell reserves units, and returns the outbox entries and the orders.
func (s saleStore) sell(b *testing.B, units int) (outbox, sns []string) {
	b.Helper()
	for ; units > 0; units -= reservation.MaxBatch {
		group := newBuyers(b, min(reservation.MaxBatch, units))
		entry := must.Get(s.reserveAll(b.Context(), group))(b)
		outbox = append(outbox, entry)
		for _, r := range group {
			sns = append(sns, r.OrderSn)
		}
	}
	return outbox, sns
}

// written does to Redis what API and consumer do once these orders are in MySQL.
func (s saleStore) written(b *testing.B, outbox, sns []string) {
	b.Helper()
	require.NoError(b, s.Confirmed(b.Context(), s.goodsID, outbox...))
	for batch := range slices.Chunk(sns, 500) {
		must.Get(s.Settle(b.Context(), s.goodsID, batch))(b)
	}
}

// usedMB is the memory that Redis uses for its data.
func (s saleStore) usedMB(b *testing.B) float64 {
	b.Helper()
	return float64(must.Get(s.Memory(b.Context()))(b).Used) / 1e6
}

// BenchmarkAPIMemory measures the API's resident memory while 100,000 buyers ask over 2,000
// connections, and after it had time to give memory back.
func BenchmarkAPIMemory(b *testing.B) {
	f := newFixture(b)
	once(b, func() {
		goods, api := f.sale(10_000), f.APIs[0]
		requests := f.pathRequests(goods, rushBuyers, inOrder)
		before := api.Memory(b, "VmRSS")
		crowd(b, f.api, 2000, rushBuyers, func(c *client, i int) error {
			return c.hurry(requests[i])
		})
		peak := api.Memory(b, "VmHWM")
		after, waited := peak, 0
		for ; waited < 40 && after > before*1.2; waited += 5 {
			time.Sleep(5 * time.Second)
			after = api.Memory(b, "VmRSS")
		}
		b.ReportMetric(peak, "MB-peak")
		results.note("API: 100,000 buyers over 2,000 connections",
			"≤ 512 MB (SECKILL_MEMORY_LIMIT)",
			"%.0f MB before, %.0f MB at the peak, %.0f MB %d s later", before, peak, after, waited)
	})
}
