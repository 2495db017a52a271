package redisstore

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"flashsale.dev/seckill/internal/order/rebuild"
	"flashsale.dev/seckill/internal/seckill"
)

// saleDetails are the fields of a sale that no script reads, stored as JSON.
type saleDetails struct {
	MerchantID int64        `json:"merchantId"`
	Title      string       `json:"title"`
	Price      int64        `json:"price"`
	MaxLimit   int64        `json:"maxPerBuyerLimit"`
	Rate       seckill.Rate `json:"rate"`
	CreatedAt  time.Time    `json:"createdAt"`
	UpdatedAt  time.Time    `json:"updatedAt"`
}

func encodeDetails(sale seckill.Sale) ([]byte, error) {
	return json.Marshal(saleDetails{
		MerchantID: sale.MerchantID, Title: sale.Title, Price: sale.Price,
		MaxLimit: sale.MaxPerBuyerLimit, Rate: sale.Rate, CreatedAt: sale.CreatedAt,
		UpdatedAt: sale.UpdatedAt,
	})
}

// View reads one sale and its numbers, or seckill.ErrNotLoaded where Redis does not have it.
func (s *Store) View(ctx context.Context, goodsID int64) (seckill.View, error) {
	k := keysOf(goodsID)
	fields, err := s.view.Run(ctx, s.client, []string{k.sale(), k.outbox()}, s.lease).Slice()
	if err != nil {
		return seckill.View{}, fmt.Errorf("read a sale from redis: %w", err)
	}
	v, err := readView(&reply{fields: fields})
	v.GoodsID = goodsID
	return v, err
}

// readView decodes the view script's answer.
func readView(r *reply) (seckill.View, error) {
	var v seckill.View
	v.Gate, v.Epoch = r.gate()
	v.Now = r.millis()
	if r.err == nil && v.Gate == seckill.GateMissing {
		return v, seckill.ErrNotLoaded
	}
	var c saleDetails
	if text := r.string(); r.err == nil {
		if err := json.Unmarshal([]byte(text), &c); err != nil {
			r.fail("has a card that can't be read: %w", err)
		}
	}
	v.MerchantID, v.Title, v.Price, v.MaxPerBuyerLimit = c.MerchantID, c.Title, c.Price, c.MaxLimit
	v.Rate, v.CreatedAt, v.UpdatedAt = c.Rate, c.CreatedAt, c.UpdatedAt
	v.Status = seckill.Status(r.string())
	v.StartAt, v.EndAt, v.PerBuyerLimit = r.millis(), r.millis(), r.int()
	v.Total, v.Available, v.Pending, v.Sold = r.int(), r.int(), r.int(), r.int()
	v.PendingSince = r.millis()
	v.Outbox, v.OldestAt = r.int(), streamTime(r.string())
	v.Lease = r.string()
	if until := r.int(); until > 0 {
		v.OpenUntil = time.UnixMilli(until).UTC()
	}
	return v, r.err
}

// streamTime is the time in a stream id; zero without an id.
func streamTime(id string) time.Time {
	ms, _, _ := strings.Cut(id, "-")
	n, err := strconv.ParseInt(ms, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(n).UTC()
}

// stageBatch is how many buyers one command loads.
const stageBatch = 500

// stageLife is the life of an abandoned staged load; every rebuild takes less time.
const stageLife = 10 * time.Minute

// Load begins an epoch: it stages the buyers, then one script replaces the state. It opens the gate
// unless Redis can fail over. It changes nothing and returns false where Redis has this epoch, a newer one or a newer
// version of the sale, or has lost staged buyers.
func (s *Store) Load(ctx context.Context, snap rebuild.Snapshot) (bool, error) {
	k := keysOf(snap.GoodsID)
	if err := s.stage(ctx, k.stage(snap.Epoch), snap.Holdings); err != nil {
		return false, err
	}
	text, err := encodeDetails(snap.Sale)
	if err != nil {
		return false, fmt.Errorf("encode a sale: %w", err)
	}
	loaded, err := s.load.Run(ctx, s.client,
		[]string{k.sale(), k.stage(snap.Epoch), k.buyers(), k.pending(), k.moves()}, s.lease,
		snap.Epoch, string(snap.Status), snap.StartAt.UnixMilli(), snap.EndAt.UnixMilli(),
		snap.PerBuyerLimit, snap.Total, snap.Stock, snap.Total-snap.Stock, text,
		len(snap.Holdings), snap.Version, s.loadedGate()).Int()
	if err != nil {
		return false, fmt.Errorf("load a sale into redis: %w", err)
	}
	return loaded == 1, nil
}

// loadedGate returns the value of the field gate after a load (see gate.lua).
func (s *Store) loadedGate() int {
	if s.opts.FailsOver {
		return 3
	}
	return 0
}

// stage writes the buyers to a key that the load script renames. Loading them in batches keeps each
// command short, so that Redis serves other sales meanwhile.
func (s *Store) stage(ctx context.Context, key string, holdings []rebuild.Holding) error {
	if err := s.client.Unlink(ctx, key).Err(); err != nil {
		return fmt.Errorf("stage buyers in redis: %w", err)
	}
	for chunk := range slices.Chunk(holdings, stageBatch) {
		values := make([]any, 0, 2*len(chunk))
		for _, h := range chunk {
			values = append(values, h.BuyerID, holdingText(h))
		}
		pipe := s.client.Pipeline()
		pipe.HSet(ctx, key, values...)
		pipe.Expire(ctx, key, stageLife)
		if _, err := pipe.Exec(ctx); err != nil {
			return fmt.Errorf("stage buyers in redis: %w", err)
		}
	}
	return nil
}

// holdingText encodes a holding as the scripts do (see gate.lua).
func holdingText(h rebuild.Holding) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d", h.Held)
	for _, o := range h.Orders {
		fmt.Fprintf(&b, " %s:%d", o.OrderSn, o.Quantity)
	}
	return b.String()
}

// Shut shuts the gate of a sale and makes Redis reject every load of an epoch up to the given one.
// It returns the lease of the master that did so.
func (s *Store) Shut(ctx context.Context, goodsID, epoch int64) (lease string, err error) {
	lease, err = s.shut.Run(ctx, s.client, []string{keysOf(goodsID).sale()}, epoch, s.lease).Text()
	if err != nil {
		return "", fmt.Errorf("shut a sale in redis: %w", err)
	}
	return lease, nil
}

// UpdateSale writes the fields that a merchant can change: status, window, limit and rate, but no
// counters. Of concurrent changes the newer version of the row prevails, whichever comes first.
// seckill.ErrNotLoaded where Redis does not have the sale's epoch; a load that is under way is then
// refused if it lacks this change.
func (s *Store) UpdateSale(ctx context.Context, sale seckill.Sale) error {
	text, err := encodeDetails(sale)
	if err != nil {
		return fmt.Errorf("encode a sale: %w", err)
	}
	done, err := s.updateSale.Run(ctx, s.client, []string{keysOf(sale.GoodsID).sale()}, sale.Epoch,
		sale.Version, "status", string(sale.Status), "start", sale.StartAt.UnixMilli(), "end",
		sale.EndAt.UnixMilli(), "limit", sale.PerBuyerLimit, "card", text).
		Int()
	if err != nil {
		return fmt.Errorf("change a sale in redis: %w", err)
	}
	if done == 0 {
		return seckill.ErrNotLoaded
	}
	return nil
}
