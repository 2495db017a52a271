package redisstore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// settleBatch is how many numbers one script call settles, well below Lua's limit of unpack.
const settleBatch = 500

// Settle moves orders that MySQL has committed from pending to sold. Repeats are harmless; it
// returns how many were pending.
func (s *Store) Settle(ctx context.Context, goodsID int64, sns []string) (int, error) {
	k, settled := keysOf(goodsID), 0
	for len(sns) > 0 {
		n := min(settleBatch, len(sns))
		args := make([]any, n)
		for i, sn := range sns[:n] {
			args[i] = sn
		}
		done, err := s.settle.Run(ctx, s.client, []string{k.sale(), k.pending()}, args...).Int()
		if err != nil {
			return settled, fmt.Errorf("settle in redis: %w", err)
		}
		settled, sns = settled+done, sns[n:]
	}
	return settled, nil
}

// Pending returns one reservation that MySQL may not have yet; false where there is none.
func (s *Store) Pending(
	ctx context.Context, goodsID int64, sn string,
) (reservation.OrderLine, bool, error) {
	text, err := s.client.HGet(ctx, keysOf(goodsID).pending(), sn).Result()
	if errors.Is(err, redis.Nil) {
		return reservation.OrderLine{}, false, nil
	}
	if err != nil {
		return reservation.OrderLine{}, false, fmt.Errorf("read a pending order in redis: %w", err)
	}
	p, err := readPending(text)
	return p.OrderLine, err == nil, err
}

// PendingAmong returns the lines of those numbers, grouped by goods, that are pending. It reads
// them in one round trip. A malformed line is an error, and the other lines are still returned.
func (s *Store) PendingAmong(
	ctx context.Context, numbers map[int64][]string,
) (map[string]reservation.OrderLine, error) {
	asked := make(map[int64]*redis.SliceCmd, len(numbers))
	_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for goodsID, sns := range numbers {
			asked[goodsID] = p.HMGet(ctx, keysOf(goodsID).pending(), sns...)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read pending orders in redis: %w", err)
	}
	pending := make(map[string]reservation.OrderLine)
	for goodsID, sns := range numbers {
		for i, entry := range asked[goodsID].Val() {
			text, found := entry.(string)
			if !found {
				continue
			}
			p, malformed := readPending(text)
			if malformed != nil {
				err = malformed
				continue
			}
			pending[sns[i]] = p.OrderLine
		}
	}
	return pending, err
}

// PendingPages iterates over a goods' pending reservations in pages of about count. A reservation
// that is pending throughout appears at least once. After an error the iteration ends.
func (s *Store) PendingPages(
	ctx context.Context, goodsID, count int64,
) iter.Seq2[[]order.Pending, error] {
	return func(yield func([]order.Pending, error) bool) {
		for cursor := uint64(0); ; {
			page, next, err := s.pendingPage(ctx, goodsID, cursor, count)
			if !yield(page, err) || err != nil || next == 0 {
				return
			}
			cursor = next
		}
	}
}

func (s *Store) pendingPage(
	ctx context.Context, goodsID int64, cursor uint64, count int64,
) ([]order.Pending, uint64, error) {
	flat, next, err := s.client.HScan(ctx, keysOf(goodsID).pending(), cursor, "", count).Result()
	if err != nil {
		return nil, 0, fmt.Errorf("walk over pending orders in redis: %w", err)
	}
	page := make([]order.Pending, 0, len(flat)/2)
	for i := 1; i < len(flat); i += 2 {
		p, err := readPending(flat[i])
		if err != nil {
			return nil, 0, err
		}
		page = append(page, p)
	}
	return page, next, nil
}

// NotHeld returns the numbers of those orders with units that their buyers' holdings lack.
func (s *Store) NotHeld(
	ctx context.Context, goodsID int64, orders []order.Held,
) (absent []string, err error) {
	for batch := range slices.Chunk(orders, stageBatch) {
		buyers := make([]string, len(batch))
		for i, o := range batch {
			buyers[i] = o.BuyerID
		}
		holdings, err := s.client.HMGet(ctx, keysOf(goodsID).buyers(), buyers...).Result()
		if err != nil {
			return nil, fmt.Errorf("read holdings in redis: %w", err)
		}
		for i, o := range batch {
			holding, _ := holdings[i].(string) // see gate.lua
			item := fmt.Sprintf(" %s:%d ", o.OrderSn, o.Quantity)
			if o.Quantity > 0 && !strings.Contains(holding+" ", item) {
				absent = append(absent, o.OrderSn)
			}
		}
	}
	return absent, nil
}

// readPending decodes "ms:quantity:entry".
func readPending(text string) (order.Pending, error) {
	ms, rest, _ := strings.Cut(text, ":")
	_, entry, ok := strings.Cut(rest, ":")
	at, err := strconv.ParseInt(ms, 10, 64)
	if !ok || err != nil {
		return order.Pending{}, fmt.Errorf("a pending order in redis reads %q", text)
	}
	line, err := order.DecodeLine([]byte(entry))
	if err != nil {
		return order.Pending{}, fmt.Errorf("a pending order in redis: %w", err)
	}
	return order.Pending{OrderLine: line, Entry: []byte(entry), At: time.UnixMilli(at).UTC()}, nil
}

// Adopt takes units of the present epoch for orders of an older one and returns the units that each
// of them has now: none where it was refused or has ended. Other units than a line's mean that the
// buyer repeated the path with another quantity: the line is void, and the order is on its way. The
// error is a *seckill.GateError unless the gate of this epoch is open. It is another one where too
// few replicas have what was adopted: the units stay taken, and a repeat returns them again.
//
// limit is the most units that a buyer may hold including these; 0 leaves that check to MySQL.
func (s *Store) Adopt(
	ctx context.Context, goodsID, epoch, limit int64, lines []reservation.OrderLine,
) (map[string]int64, error) {
	k := keysOf(goodsID)
	args := append(make([]any, 0, 3+4*len(lines)), s.lease, epoch, limit)
	for _, l := range lines {
		args = append(args, l.BuyerID, l.Quantity, l.OrderSn, order.EncodeLine(l))
	}
	fields, notReplicated, err := s.runReplicated(ctx, s.adopt, k,
		[]string{k.sale(), k.buyers(), k.pending()}, args)
	if err != nil {
		return nil, fmt.Errorf("adopt orders in redis: %w", err)
	}
	r := &reply{fields: fields}
	if state, has := r.gate(); r.err == nil && state != seckill.GateOpen {
		return nil, gateError(state, has)
	}
	if notReplicated != nil {
		return nil, fmt.Errorf("adopt orders in redis: %w", notReplicated)
	}
	adopted := make(map[string]int64, len(lines))
	for _, l := range lines {
		adopted[l.OrderSn] = r.int()
	}
	return adopted, r.err
}

// Release applies stock moves of one goods, each once, and returns the result of each.
func (s *Store) Release(
	ctx context.Context, goodsID int64, moves []order.StockMove,
) ([]order.MoveResult, error) {
	k := keysOf(goodsID)
	args := append(make([]any, 0, 1+6*len(moves)), s.lease)
	for _, m := range moves {
		args = append(args, m.ID, m.Epoch, string(m.Kind), m.BuyerID, m.OrderSn, m.Quantity)
	}
	codes, err := s.release.Run(ctx, s.client,
		[]string{k.sale(), k.buyers(), k.pending(), k.moves()}, args...).
		Int64Slice()
	if err != nil {
		return nil, fmt.Errorf("release in redis: %w", err)
	}
	results := make([]order.MoveResult, len(codes))
	for i, c := range codes {
		results[i] = order.MoveResult(c)
	}
	return results, nil
}
