package redisstore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/rebuild"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/userid"
	"flashsale.dev/seckill/internal/workers"
)

// saleDetails are the fields of a sale that are stored as JSON. The admit script reads the rate.
type saleDetails struct {
	MerchantID merchantID   `json:"merchantId"`
	Title      string       `json:"title"`
	Price      int64        `json:"price"`
	MaxLimit   int64        `json:"maxPerBuyerLimit"`
	Rate       seckill.Rate `json:"rate"`
	// Admission is absent from what earlier releases wrote.
	Admission seckill.Admission `json:"admission,omitempty"`
	// AccessCode is absent where buyers need none, so that the card of such a sale is as before.
	AccessCode seckill.AccessCode `json:"accessCode,omitempty"`
	CreatedAt  time.Time          `json:"createdAt"`
	UpdatedAt  time.Time          `json:"updatedAt"`
}

// merchantID is the id of a user in a card. While both releases run, programs of a release whose
// ids were numbers read the card too. They read only a JSON number, so an id that is one stays one.
type merchantID string

// MarshalJSON implements json.Marshaler.
func (id merchantID) MarshalJSON() ([]byte, error) {
	if _, is := userid.Number(string(id)); is {
		return []byte(id), nil
	}
	return json.Marshal(string(id))
}

// UnmarshalJSON implements json.Unmarshaler.
func (id *merchantID) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] != '"' {
		var n json.Number
		err := json.Unmarshal(b, &n)
		*id = merchantID(n)
		return err
	}
	return json.Unmarshal(b, (*string)(id))
}

func encodeDetails(sale seckill.Sale) ([]byte, error) {
	details := saleDetails{
		MerchantID: merchantID(sale.MerchantID), Title: sale.Title, Price: sale.Price,
		MaxLimit: sale.MaxPerBuyerLimit, Rate: sale.Rate, CreatedAt: sale.CreatedAt,
		UpdatedAt: sale.UpdatedAt, Admission: sale.Admission,
	}
	if sale.AccessCode.Required() {
		details.AccessCode = sale.AccessCode
	}
	return json.Marshal(details)
}

// View reads one sale and its numbers, or seckill.ErrNotLoaded where Redis does not have it.
func (s *Store) View(ctx context.Context, goodsID int64) (seckill.View, error) {
	k := keysOf(goodsID)
	fields, err := s.view.Run(ctx, s.client, []string{k.sale(), k.outbox()}, s.opts.Lease).Slice()
	if err != nil {
		return seckill.View{}, fmt.Errorf("read a sale from redis: %w", err)
	}
	return viewOf(goodsID, fields)
}

// Views reads sales in one pipeline. It leaves out those of a master that does not answer within
// order.RedisDeadline. A sale that Redis does not have is in the map with GateMissing.
func (s *Store) Views(ctx context.Context, goodsIDs []int64) map[int64]seckill.View {
	ctx, cancel := context.WithTimeout(ctx, order.RedisDeadline)
	defer cancel()
	pipe, answers := s.client.Pipeline(), make([]*redis.Cmd, len(goodsIDs))
	for i, id := range goodsIDs {
		k := keysOf(id)
		answers[i] = s.view.EvalSha(ctx, pipe, []string{k.sale(), k.outbox()}, s.opts.Lease)
	}
	_, _ = pipe.Exec(ctx) // each answer has its own error
	views := make(map[int64]seckill.View, len(goodsIDs))
	for i, id := range goodsIDs {
		var v seckill.View
		err := answers[i].Err()
		// go-redis may put the timeout of another master on an answer that has arrived.
		if fields, arrived := answers[i].Val().([]any); arrived {
			v, err = viewOf(id, fields)
		} else if redis.HasErrorPrefix(err, "NOSCRIPT") {
			v, err = s.View(ctx, id)
		}
		if err == nil || errors.Is(err, seckill.ErrNotLoaded) {
			views[id] = v
		}
	}
	return views
}

// viewOf decodes the view script's answer for one sale.
func viewOf(goodsID int64, fields []any) (seckill.View, error) {
	r, v := &reply{fields: fields}, seckill.View{Sale: seckill.Sale{GoodsID: goodsID}}
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
	v.MerchantID, v.Title = string(c.MerchantID), c.Title
	v.Price, v.MaxPerBuyerLimit = c.Price, c.MaxLimit
	v.Rate, v.CreatedAt, v.UpdatedAt = c.Rate, c.CreatedAt, c.UpdatedAt
	v.Admission = cmp.Or(c.Admission, seckill.ByRate)
	v.AccessCode = cmp.Or(c.AccessCode, seckill.NoCodes)
	v.Status = seckill.Status(r.string())
	v.StartAt, v.EndAt, v.PerBuyerLimit = r.millis(), r.millis(), r.int()
	v.Total, v.Available, v.Pending, v.Sold = r.int(), r.int(), r.int(), r.int()
	v.PendingSince = r.millis()
	v.Outbox, v.OldestAt = r.int(), streamTime(r.string())
	v.Lease, v.OpenUntil = r.string(), r.optionalMillis()
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

// stageBatch is how many orders one script call stages, well below Lua's limit of unpack.
const stageBatch = 1000

// stageLife is the life of an abandoned staged load, from its last batch on.
const stageLife = 10 * time.Minute

// Load begins an epoch: it stages the holdings page by page, then one script replaces the state by
// the sale that current returns. It opens the gate unless Redis can fail over. It leaves the sale
// unchanged and returns false where the gate is open, or where Redis has this epoch or a newer one.
// It does so too where Redis has a fence at it or a newer version of the sale. The same holds where
// Redis has lost staged holdings or restarted since the first.
func (s *Store) Load(
	ctx context.Context, goodsID int64, pages iter.Seq2[[]order.Held, error],
	current func() (seckill.Sale, error),
) (loaded bool, err error) {
	k := keysOf(goodsID)
	stage := k.stage(uuid.NewString())
	defer func() {
		if !loaded { // each repeated rebuild would leave a copy of all holdings
			_ = s.client.Unlink(context.WithoutCancel(ctx), stage).Err()
		}
	}()
	staged, err := s.stageAll(ctx, stage, pages)
	if errors.Is(err, errNotStaged) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	sale, err := current()
	if err != nil {
		return false, err
	}
	text, err := encodeDetails(sale)
	if err != nil {
		return false, fmt.Errorf("encode a sale: %w", err)
	}
	loaded, err = s.load.Run(ctx, s.client,
		[]string{k.sale(), stage, k.buyers(), k.pending(), k.moves(), k.blocks()},
		s.opts.Lease, sale.Epoch, string(sale.Status), sale.StartAt.UnixMilli(),
		sale.EndAt.UnixMilli(), sale.PerBuyerLimit, sale.Total, sale.Stock, sale.Total-sale.Stock, text,
		staged, sale.Version, !s.opts.FailsOver, sale.Admission == seckill.ByWaitingRoom).Bool()
	if err != nil {
		return false, fmt.Errorf("load a sale into redis: %w", err)
	}
	return loaded, nil
}

// errNotStaged means that Redis has lost a batch that was staged before, has restarted or was
// replaced.
var errNotStaged = errors.New("redis has lost staged holdings")

// stageAll stages each page before it asks for the next one. It returns the number of batches.
func (s *Store) stageAll(
	ctx context.Context, key string, pages iter.Seq2[[]order.Held, error],
) (staged int, err error) {
	// The first batch is empty. It proves that Redis was not emptied since, also without orders.
	staged = 1
	if err := s.stageOrders(ctx, key, staged, nil); err != nil {
		return staged, err
	}
	for page, err := range pages {
		if err != nil {
			return staged, fmt.Errorf("read a page of holdings: %w", err)
		}
		for batch := range slices.Chunk(page, stageBatch) {
			staged++
			if err := s.stageAgain(ctx, key, staged, batch); err != nil {
				return staged, err
			}
		}
	}
	return staged, nil
}

// stagePatience is for how long one batch is repeated. A sale with a million orders has a thousand
// batches, and a rebuild begins with the first one again if one fails. It is a time and no number
// of attempts: a cluster's client fails at once while the breaker of a node is open.
const stagePatience = 5 * time.Second

// stageAgain is stageOrders that repeats a call without an answer, such as while Redis pauses. A
// repeated batch changes nothing.
func (s *Store) stageAgain(
	ctx context.Context, key string, number int, orders []order.Held,
) error {
	pauses := workers.RetryBackoff()
	for began := time.Now(); ; {
		err := s.stageOrders(ctx, key, number, orders)
		if err == nil || errors.Is(err, errNotStaged) || ctx.Err() != nil ||
			time.Since(began) > stagePatience {
			return err
		}
		workers.Sleep(ctx, pauses.NextBackOff())
	}
}

// stageOrders adds the batch with a number, from 1 on, to the holdings of a key that the load
// script renames. Short calls let Redis serve other sales meanwhile.
func (s *Store) stageOrders(
	ctx context.Context, key string, number int, orders []order.Held,
) error {
	args := append(make([]any, 0, 3+3*len(orders)), number, int(stageLife.Seconds()), s.opts.Lease)
	for _, o := range orders {
		args = append(args, o.BuyerID, o.OrderSn, o.Quantity)
	}
	staged, err := s.stage.Run(ctx, s.client, []string{key}, args...).Bool()
	if err != nil {
		return fmt.Errorf("stage holdings in redis: %w", err)
	}
	if !staged {
		return errNotStaged
	}
	return nil
}

// Shut shuts the gate of a sale and makes Redis reject every load of an epoch up to the given one.
// It returns the lease of the master that did so. The error is rebuild.ErrFenced, and nothing is
// changed, where Redis has a newer epoch.
func (s *Store) Shut(ctx context.Context, goodsID, epoch int64) (lease string, err error) {
	keys := []string{keysOf(goodsID).sale()}
	lease, err = s.shut.Run(ctx, s.client, keys, epoch, s.opts.Lease).Text()
	if err != nil {
		return "", fmt.Errorf("shut a sale in redis: %w", err)
	}
	if lease == "" {
		return "", fmt.Errorf("shut a sale in redis: %w", rebuild.ErrFenced)
	}
	return lease, nil
}

// UpdateSale writes the fields that a merchant can change: status, window, limit and rate, but no
// counters. Of two changes the one of the newer version of the row stays, whichever arrives first.
// The error is seckill.ErrNotLoaded where Redis does not have the sale's epoch. Redis then keeps
// the version, and refuses a load under way that was read before this change.
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
