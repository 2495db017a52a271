package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/message"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// settleBatch is how many numbers one script call settles, well below Lua's limit of unpack.
const settleBatch = 500

// Settle moves orders that MySQL has committed from pending to sold. Repeats are harmless; it
// returns how many were pending.
func (s *Store) Settle(ctx context.Context, goodsID int64, sns []string) (int, error) {
	k, settled := keysOf(goodsID), 0
	for batch := range slices.Chunk(sns, settleBatch) {
		args := make([]any, len(batch))
		for i, sn := range batch {
			args[i] = sn
		}
		done, err := s.settle.Run(ctx, s.client,
			[]string{k.sale(), k.pending(), k.blocks()}, args...).
			Int()
		if err != nil {
			return settled, fmt.Errorf("settle in redis: %w", err)
		}
		settled += done
	}
	return settled, nil
}

// Pending returns one reservation that MySQL may not have yet; false where there is none.
func (s *Store) Pending(
	ctx context.Context, goodsID int64, sn string,
) (reservation.OrderLine, bool, error) {
	lines, err := s.PendingAmong(ctx, map[int64][]string{goodsID: {sn}})
	line, pending := lines[sn]
	return line, pending, err
}

// PendingAmong returns the lines of those numbers, grouped by goods, that are pending. A malformed
// line is an error, and the other lines are still returned.
func (s *Store) PendingAmong(
	ctx context.Context, numbers map[int64][]string,
) (map[string]reservation.OrderLine, error) {
	lines := make(map[string]reservation.OrderLine)
	left, malformed, err := s.addPending(ctx, numbers, lines)
	if err == nil && len(left) > 0 { // blocks deleted between the two reads: the orders are settled
		var again error
		left, again, err = s.addPending(ctx, left, lines)
		malformed = errors.Join(malformed, again)
	}
	if err != nil {
		return nil, fmt.Errorf("read pending orders in redis: %w", err)
	}
	if len(left) > 0 {
		malformed = fmt.Errorf("a pending order in redis is in no block: %v", left)
	}
	return lines, malformed
}

// addPending reads pending orders in two round trips at most, the second for orders in blocks. It
// returns the numbers whose blocks it does not find, and the error of a malformed line.
func (s *Store) addPending(
	ctx context.Context, numbers map[int64][]string, lines map[string]reservation.OrderLine,
) (left map[int64][]string, malformed, err error) {
	values, err := s.hashFields(ctx, keys.pending, numbers)
	if err != nil {
		return nil, nil, err
	}
	inBlocks := make(map[int64]map[string][]string)
	for goodsID, sns := range numbers {
		byBlock := make(map[string][]string)
		for i, sn := range sns {
			text, found := values[goodsID][i].(string)
			if !found {
				continue
			}
			p, block, err := readPending(text)
			switch {
			case err != nil:
				malformed = err
			case block == "":
				lines[sn] = p.OrderLine
			default:
				byBlock[block] = append(byBlock[block], sn)
			}
		}
		if len(byBlock) > 0 {
			inBlocks[goodsID] = byBlock
		}
	}
	left, again, err := s.addFromBlocks(ctx, inBlocks, lines)
	return left, cmp.Or(again, malformed), err
}

// addFromBlocks is addPending for orders by goods and block.
func (s *Store) addFromBlocks(
	ctx context.Context, inBlocks map[int64]map[string][]string,
	lines map[string]reservation.OrderLine,
) (left map[int64][]string, malformed, err error) {
	blocks := make(map[int64][]string, len(inBlocks))
	for goodsID, byBlock := range inBlocks {
		blocks[goodsID] = slices.Collect(maps.Keys(byBlock))
	}
	arrays, err := s.hashFields(ctx, keys.blocks, blocks)
	if err != nil {
		return nil, nil, err
	}
	left = make(map[int64][]string)
	for goodsID, names := range blocks {
		for i, name := range names {
			array, found := arrays[goodsID][i].(string)
			if !found {
				left[goodsID] = append(left[goodsID], inBlocks[goodsID][name]...)
				continue
			}
			for _, sn := range inBlocks[goodsID][name] {
				entry, _ := message.FindEntry([]byte(array), sn)
				line, err := decodePending(entry)
				if err != nil {
					malformed = err
					continue
				}
				lines[sn] = line
			}
		}
	}
	return left, malformed, nil
}

// hashFields reads fields of a hash of each goods in one round trip.
func (s *Store) hashFields(
	ctx context.Context, hash func(keys) string, fields map[int64][]string,
) (map[int64][]any, error) {
	values := make(map[int64][]any, len(fields))
	if len(fields) == 0 {
		return values, nil
	}
	asked := make(map[int64]*redis.SliceCmd, len(fields))
	_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for goodsID, names := range fields {
			asked[goodsID] = p.HMGet(ctx, hash(keysOf(goodsID)), names...)
		}
		return nil
	})
	for goodsID, cmd := range asked {
		values[goodsID] = cmd.Val()
	}
	return values, err
}

// PendingPages iterates over a goods' pending reservations in pages of about count. A reservation
// that is pending throughout appears at least once. After an error the iteration ends.
func (s *Store) PendingPages(
	ctx context.Context, goodsID, count int64,
) iter.Seq2[[]order.Pending, error] {
	return func(yield func([]order.Pending, error) bool) {
		k := keysOf(goodsID)
		inBlocks := func(flat []string) ([]order.Pending, error) {
			return s.pendingOfBlocks(ctx, k, flat)
		}
		alone := func(flat []string) ([]order.Pending, error) {
			return s.pendingAlone(ctx, goodsID, flat)
		}
		_ = s.walk(ctx, k.blocks(), max(1, count/blockSize), inBlocks, yield) &&
			s.walk(ctx, k.pending(), count, alone, yield)
	}
}

// walk yields what read returns of each page of a hash, and reports whether the iteration goes on.
func (s *Store) walk(
	ctx context.Context, hash string, count int64,
	read func(flat []string) ([]order.Pending, error), yield func([]order.Pending, error) bool,
) bool {
	for cursor := uint64(0); ; {
		flat, next, err := s.client.HScan(ctx, hash, cursor, "", count).Result()
		var page []order.Pending
		if err == nil {
			page, err = read(flat)
		}
		if err != nil {
			err = fmt.Errorf("walk over pending orders in redis: %w", err)
		}
		if (err != nil || len(page) > 0) && !yield(page, err) || err != nil {
			return false
		}
		if next == 0 {
			return true
		}
		cursor = next
	}
}

// pendingAlone reads the orders of pending that are in no block; pendingOfBlocks reads the others.
// An order whose block is missing is an error.
func (s *Store) pendingAlone(
	ctx context.Context, goodsID int64, flat []string,
) ([]order.Pending, error) {
	page, inBlocks := make([]order.Pending, 0, len(flat)/2), make(map[string][]string)
	for i := 1; i < len(flat); i += 2 {
		p, block, err := readPending(flat[i])
		switch {
		case err != nil:
			return nil, err
		case block == "":
			page = append(page, p)
		default:
			inBlocks[block] = append(inBlocks[block], flat[i-1])
		}
	}
	has := make(map[string]*redis.BoolCmd, len(inBlocks))
	_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for block := range inBlocks {
			has[block] = p.HExists(ctx, keysOf(goodsID).blocks(), block)
		}
		return nil
	})
	var doubtful []string
	for block, sns := range inBlocks {
		if err == nil && !has[block].Val() {
			doubtful = append(doubtful, sns...)
		}
	}
	if err == nil && len(doubtful) > 0 { // settled since, or in no block
		_, err = s.PendingAmong(ctx, map[int64][]string{goodsID: doubtful})
	}
	return page, err
}

// pendingOfBlocks reads the orders of blocks that are still pending. A block may have none:
// programs of an earlier release know no blocks, and leave a block behind whose last order they
// settle or release.
func (s *Store) pendingOfBlocks(
	ctx context.Context, k keys, flat []string,
) (page []order.Pending, err error) {
	var names, sns []string // for each order, the name of its block and its number
	for i := 1; i < len(flat); i += 2 {
		name := flat[i-1]
		if strings.HasPrefix(name, "n") { // a count
			continue
		}
		entries, err := message.SplitEntries([]byte(flat[i]))
		if err != nil {
			return nil, fmt.Errorf("block %s: %w", name, err)
		}
		for _, entry := range entries {
			line, err := decodePending(entry)
			if err != nil {
				return nil, err
			}
			page = append(page, order.Pending{OrderLine: line, Entry: entry})
			names, sns = append(names, name), append(sns, line.OrderSn)
		}
	}
	if len(sns) == 0 {
		return nil, nil
	}
	values, err := s.client.HMGet(ctx, k.pending(), sns...).Result()
	if err != nil {
		return nil, err
	}
	still := page[:0]
	for i, value := range values {
		text, _ := value.(string)
		if p, block, err := readPending(text); err == nil && block == names[i] {
			page[i].At = p.At
			still = append(still, page[i])
		}
	}
	return still, nil
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

// readPending decodes "ms:quantity:entry". Of "ms:quantity:#block" it returns the time and the
// block.
func readPending(text string) (p order.Pending, block string, err error) {
	ms, rest, _ := strings.Cut(text, ":")
	_, entry, ok := strings.Cut(rest, ":")
	at, err := strconv.ParseInt(ms, 10, 64)
	if !ok || err != nil {
		return p, "", fmt.Errorf("a pending order in redis reads %q", text)
	}
	p.At = time.UnixMilli(at).UTC()
	if block, _ := strings.CutPrefix(entry, "#"); block != entry && block != "" {
		return p, block, nil
	}
	p.Entry = []byte(entry)
	p.OrderLine, err = decodePending(p.Entry)
	return p, "", err
}

func decodePending(entry []byte) (reservation.OrderLine, error) {
	line, err := message.DecodeLine(entry)
	if err != nil {
		err = fmt.Errorf("a pending order in redis: %w", err)
	}
	return line, err
}

// Adopt takes units of the present epoch for orders of an older one. It returns the units that each
// of them has now: its line's quantity, or 0 where it was refused or has ended. Any other number
// means that the buyer has repeated the path with another quantity: the line is void, and the
// message of the repeated purchase is on its way. limit is the most units that a buyer may hold
// including these; 0 leaves that check to MySQL.
//
// The error is a *seckill.GateError unless the gate of this epoch is open. It is another one where
// too few replicas have what was adopted: the units stay taken, and a repeated call returns them.
func (s *Store) Adopt(
	ctx context.Context, goodsID, epoch, limit int64, lines []reservation.OrderLine,
) (map[string]int64, error) {
	return s.adoptLines(ctx, goodsID, epoch, limit, false, lines)
}

// Retake is Adopt for an order that an operator requeues: it takes units for an order that has
// ended, too. It returns the units that the order has now.
func (s *Store) Retake(
	ctx context.Context, goodsID, epoch, limit int64, l reservation.OrderLine,
) (int64, error) {
	units, err := s.adoptLines(ctx, goodsID, epoch, limit, true, []reservation.OrderLine{l})
	return units[l.OrderSn], err
}

func (s *Store) adoptLines(
	ctx context.Context, goodsID, epoch, limit int64, requeued bool,
	lines []reservation.OrderLine,
) (map[string]int64, error) {
	k := keysOf(goodsID)
	args := append(make([]any, 0, 4+4*len(lines)), s.opts.Lease, epoch, limit, requeued)
	for _, l := range lines {
		args = append(args, l.BuyerID, l.Quantity, l.OrderSn, message.EncodeLine(l))
	}
	fields, notReplicated, err := s.runReplicated(ctx, s.adopt, k,
		[]string{k.sale(), k.buyers(), k.pending()}, args)
	if err != nil {
		return nil, fmt.Errorf("adopt orders in redis: %w", err)
	}
	r := &reply{fields: fields}
	if state, has := r.gate(); r.err == nil && state != seckill.GateOpen {
		return nil, &seckill.GateError{State: state, Epoch: has}
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
	args := append(make([]any, 0, 1+6*len(moves)), s.opts.Lease)
	for _, m := range moves {
		args = append(args, m.ID, m.Epoch, string(m.Kind), m.BuyerID, m.OrderSn, m.Quantity)
	}
	codes, err := s.release.Run(ctx, s.client,
		[]string{k.sale(), k.buyers(), k.pending(), k.moves(), k.blocks()}, args...).
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
