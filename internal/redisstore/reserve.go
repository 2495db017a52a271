package redisstore

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"flashsale.dev/seckill/internal/order/message"
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
	keys := []string{k.sale(), k.buyers(), k.pending(), k.outbox(), k.blocks()}
	for _, r := range rs {
		if r.StoredPath != "" {
			keys = append(keys, k.storedPath(r.StoredPath))
		}
	}
	entries := make([][]byte, len(rs))
	for i, r := range rs {
		entries[i] = message.EncodeLine(r.OrderLine)
	}
	fields, notReplicated, err := s.runReplicated(ctx, s.reserve, k, keys,
		s.reserveArgs(epoch, rs, entries))
	if err != nil {
		return reservation.Result{}, fmt.Errorf("reserve in redis: %w", err)
	}
	g, err := readReserveResult(&reply{fields: fields}, rs)
	g.NotReplicated = notReplicated
	if g.OutboxID != "" {
		g.Entries = message.JoinEntries(takenOf(entries, g.Verdicts))
	}
	return g, err
}

func takenOf(entries [][]byte, verdicts []reservation.Verdict) [][]byte {
	taken := make([][]byte, 0, len(entries))
	for i, v := range verdicts {
		if v.Code == reservation.Taken {
			taken = append(taken, entries[i])
		}
	}
	return taken
}

// SoldOut reports which of up to MaxBatch reservations the reserve script refuses because no unit
// is left. It takes nothing, and costs less than Reserve. All others need Reserve; all do where the
// gate is shut or epoch differs. None of rs has a StoredPath.
func (s *Store) SoldOut(
	ctx context.Context, goodsID, epoch int64, rs []reservation.Reservation,
) ([]bool, error) {
	k := keysOf(goodsID)
	args := make([]any, reserveHeader, reserveHeader+len(rs))
	earliest, latest, most := int64(maxPathEnd), int64(0), int64(0)
	for _, r := range rs {
		earliest, latest = min(earliest, pathEndOf(r)), max(latest, pathEndOf(r))
		most = max(most, r.Quantity)
		args = append(args, r.BuyerID)
	}
	copy(args, []any{
		s.opts.Lease, epoch, s.opts.MaxBacklogMillis, len(rs), most, "", earliest, latest, "",
	})
	keys := []string{k.sale(), k.buyers(), k.pending(), k.outbox(), k.blocks()}
	fields, err := s.reserve.Run(ctx, s.client, keys, args...).Slice()
	if err != nil {
		return nil, fmt.Errorf("ask redis for a sold-out sale: %w", err)
	}
	r := &reply{fields: fields}
	state, _ := r.gate()
	r.next += 2 // units and outbox entry
	digits, refused := r.string(), make([]bool, len(rs))
	if r.err != nil || state != seckill.GateOpen || len(digits) != len(rs) {
		return refused, r.err
	}
	for i := range refused {
		refused[i] = reservation.VerdictCode(digits[i]-'0') == reservation.TooFew
	}
	return refused, nil
}

// blockSize is the number of entries in one argument of the reserve script, which stores those of
// an array together. An order's entry is read with its block, which must therefore be small.
const blockSize = 32

// reserveArgs are the script's arguments. An argument costs Redis more than its bytes do: the
// quantities and the ends of the paths are one argument each.
func (s *Store) reserveArgs(epoch int64, rs []reservation.Reservation, entries [][]byte) []any {
	args := make([]any, reserveHeader+2*len(rs), reserveHeader+2*len(rs)+len(rs)/blockSize+1)
	ids, numbers := args[reserveHeader:], args[reserveHeader+len(rs):]
	lengths := make([]byte, 0, 2*len(rs))
	ends, quantities := make([]byte, 0, 13*len(rs)), make([]byte, 0, 9*len(rs))
	buyers, allOne := make(map[string]struct{}, len(rs)), true
	earliest, latest := int64(maxPathEnd), int64(0)
	for i, r := range rs {
		ids[i], numbers[i] = r.BuyerID, r.OrderSn
		lengths = binary.BigEndian.AppendUint16(lengths, uint16(len(entries[i])))
		end := pathEndOf(r)
		earliest, latest = min(earliest, end), max(latest, end)
		ends = appendDigits(ends, end, 13)
		quantity := r.Quantity
		if quantity < 0 || quantity > maxQuantity {
			quantity = 0 // the script refuses it as malformed
		}
		allOne = allOne && quantity == 1
		buyers[r.BuyerID] = struct{}{}
		quantities = appendDigits(quantities, quantity, 9)
	}
	if allOne && len(buyers) == len(rs) {
		quantities = nil
	}
	copy(args, []any{
		s.opts.Lease, epoch, s.opts.MaxBacklogMillis, len(rs), quantities, ends, earliest, latest,
		lengths,
	})
	for block := range slices.Chunk(entries, blockSize) {
		args = append(args, message.JoinEntries(block))
	}
	return args
}

// pathEndOf returns the end of a reservation's path in Unix ms, which has at most 13 digits.
func pathEndOf(r reservation.Reservation) int64 {
	return min(max(r.PathEnd.UnixMilli(), 0), maxPathEnd)
}

const (
	// reserveHeader is the number of the script's arguments before the first buyer.
	reserveHeader = 9

	maxPathEnd  = 9_999_999_999_999 // 13 digits
	maxQuantity = 999_999_999       // 9 digits
)

// appendDigits appends n, which is not negative, as that many digits with leading zeros.
func appendDigits(b []byte, n int64, digits int) []byte {
	from := len(b)
	b = append(b, make([]byte, digits)...)
	for i := from + digits - 1; i >= from; i-- {
		b[i] = byte('0' + n%10)
		n /= 10
	}
	return b
}

// readReserveResult decodes the script's answer: one digit per reservation, then the details of the
// verdicts that have any.
func readReserveResult(r *reply, rs []reservation.Reservation) (reservation.Result, error) {
	state, epoch := r.gate()
	g := reservation.Result{Available: r.int(), OutboxID: r.string()}
	if r.err == nil && state != seckill.GateOpen {
		return g, &seckill.GateError{State: state, Epoch: epoch}
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
