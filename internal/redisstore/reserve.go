package redisstore

import (
	"context"
	"fmt"
	"strings"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// Reserve decides 1 to MaxBatch reservations of one goods in one script call. Where the gate is
// shut, or epoch differs from Redis', it takes nothing and returns a *seckill.GateError. All or
// none have a StoredPath. The result's NotReplicated is set where too few replicas confirmed the
// batch within WaitTimeout.
func (s *Store) Reserve(
	ctx context.Context, goodsID, epoch int64, rs []reservation.Reservation,
) (reservation.Result, error) {
	k := keysOf(goodsID)
	keys := []string{k.sale(), k.buyers(), k.pending(), k.outbox()}
	args := append(make([]any, 0, 3+5*len(rs)), s.lease, epoch, s.opts.MaxBacklogMillis)
	entries := make([][]byte, len(rs))
	for i, r := range rs {
		if r.StoredPath != "" {
			keys = append(keys, k.storedPath(r.StoredPath))
		}
		entries[i] = order.EncodeLine(r.OrderLine)
		args = append(args, r.BuyerID, r.Quantity, r.OrderSn, r.PathEnd.UnixMilli(), entries[i])
	}
	fields, notReplicated, err := s.runReplicated(ctx, s.reserve, k, keys, args)
	if err != nil {
		return reservation.Result{}, fmt.Errorf("reserve in redis: %w", err)
	}
	g, err := readReserveResult(&reply{fields: fields}, rs)
	g.NotReplicated = notReplicated
	if g.OutboxID != "" {
		taken := entries[:0]
		for i, v := range g.Verdicts {
			if v.Code == reservation.Taken {
				taken = append(taken, entries[i])
			}
		}
		g.Entries = order.JoinEntries(taken)
	}
	return g, err
}

// readReserveResult decodes the script's answer: one digit per reservation, then the details of the
// verdicts that have any.
func readReserveResult(r *reply, rs []reservation.Reservation) (reservation.Result, error) {
	state, epoch := r.gate()
	g := reservation.Result{Now: r.millis(), Available: r.int(), OutboxID: r.string()}
	if r.err == nil && state != seckill.GateOpen {
		return g, gateError(state, epoch)
	}
	digits := r.string()
	if r.err == nil && len(digits) != len(rs) {
		r.fail("has %d verdicts for %d reservations", len(digits), len(rs))
	}
	for i := 0; r.err == nil && i < len(rs); i++ {
		code := reservation.VerdictCode(digits[i] - '0')
		g.Verdicts = append(g.Verdicts, readVerdict(r, code, rs[i].OrderSn))
	}
	return g, r.err
}

// readVerdict reads the detail that belongs to a verdict.
func readVerdict(r *reply, code reservation.VerdictCode, sn string) reservation.Verdict {
	v := reservation.Verdict{Code: code}
	switch {
	case code < 0 || code >= reservation.NumVerdicts:
		r.fail("has the verdict %d", code)
	case code == reservation.Taken:
		v.OrderSn = sn
	case code == reservation.Repeated:
		v.OrderSn = r.string()
	case code == reservation.OverLimit:
		v.OrderSns = strings.Fields(r.string())
	case code == reservation.TooFew:
		v.Available = r.int()
	}
	return v
}
