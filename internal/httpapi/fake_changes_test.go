package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/stats"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/salechange"
)

// savedKey is what a key stood for.
type savedKey struct {
	hash string
	sale int64
}

// before finds what a key stood for; ok where it did. The fake's lock is held.
func (f *fake) before(once salechange.IdempotencyKey) (seckill.Sale, bool, error) {
	had, known := f.keys[fmt.Sprint(once.ActorID, once.Key)]
	switch {
	case once.Key == "" || !known:
		return seckill.Sale{}, false, nil
	case had.hash != once.Hash:
		return seckill.Sale{}, true, salechange.NewIdempotencyConflict()
	}
	return f.sales[had.sale], true, nil
}

func (f *fake) remember(once salechange.IdempotencyKey, id int64, by seckill.Actor, what salechange.Action) {
	if once.Key != "" {
		f.keys[fmt.Sprint(once.ActorID, once.Key)] = savedKey{once.Hash, id}
	}
	f.writes++
	f.trail = append(f.trail, salechange.AuditEntry{
		ID: fmt.Sprintf("01a1fc15-9a10-78e6-83a6-%012d", len(f.trail)), GoodsID: id, ActorID: by.ID, Role: by.Role, Action: what,
		Was: json.RawMessage(`{"price":1}`), Became: json.RawMessage(`{"price":2}`), At: f.now,
	})
}

func (f *fake) Change(_ context.Context, by seckill.Actor, id int64, c salechange.Change, once salechange.IdempotencyKey) (seckill.Sale, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, err := f.sale(by, id)
	if err != nil {
		return s, err
	}
	if s, known, err := f.before(once); known {
		return s, err
	}
	if s, err = c.Apply(s); err != nil {
		return s, err
	}
	f.sales[id] = s
	f.remember(once, id, by, salechange.ActChange)
	return s, nil
}

func (f *fake) Delete(_ context.Context, by seckill.Actor, id int64, once salechange.IdempotencyKey) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, known, err := f.before(once); known {
		return err
	}
	s, err := f.sale(by, id)
	if err != nil {
		return err
	}
	if s.Status != seckill.Draft {
		return seckill.NewError(seckill.Conflict, "only a draft can be deleted")
	}
	delete(f.sales, id)
	f.remember(once, id, by, salechange.ActDelete)
	return nil
}

func (f *fake) Audit(_ context.Context, by seckill.Actor, id int64, before string, limit int) ([]salechange.AuditEntry, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, err := f.sale(by, id); err != nil {
		return nil, err
	}
	var out []salechange.AuditEntry
	for _, e := range slices.Backward(f.trail) {
		if e.GoodsID == id && (before == "" || e.ID < before) && len(out) < limit {
			out = append(out, e)
		}
	}
	return out, nil
}

func (f *fake) Statistics(_ context.Context, by seckill.Actor, id int64) (stats.Statistics, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, err := f.sale(by, id)
	return stats.Statistics{View: f.view(s), Orders: map[order.Status]stats.Count{order.Paid: {Orders: 1, Units: 2, Amount: 3}}}, err
}
