package rebuild

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/workers"
)

// Lease identifies a Redis master from one restart or promotion to the next, with its time.
type Lease struct {
	ID  string
	Now time.Time
}

// OpenTime is the time for which a gate is open, by its master's clock.
type OpenTime struct{ From, Until time.Time }

// OpenSale is a sale whose gate MySQL has open on some master.
type OpenSale struct{ GoodsID, Epoch int64 }

const (
	// clockStep is how far a master's clock may go back without ending its gates.
	clockStep = 100 * time.Millisecond
	// gateMargin is added to a wait for the end of a gate: for clocks that run at different speeds.
	gateMargin = 400*time.Millisecond + clockStep
	// longestLifetime is what a gate on another master may have where this Redis cannot fail over.
	longestLifetime = time.Minute
	// renewals is how often a gate is renewed in its lifetime. MySQL may be away for the rest.
	renewals = 8
)

// openTime is the time for which a gate is open, counted from the moment at which its master's
// lease was read. The caller reads the lease before it reads or writes MySQL's record, so that a
// worker which sleeps after that opens no gate for longer.
func openTime(l Lease, lifetime time.Duration) OpenTime {
	return OpenTime{From: l.Now.Add(-clockStep), Until: l.Now.Add(lifetime)}
}

// open records in MySQL that the gate of a loaded epoch opens on its master, and opens it. The
// error is ErrFenced if a newer rebuild has begun, or if the sale is on another master now.
func (o Opener) open(ctx context.Context, sale seckill.Sale, token int64) error {
	lease, err := o.Redis.Lease(ctx, sale.GoodsID)
	if err != nil {
		return err
	}
	if err := o.Store.RecordOpening(ctx, sale.GoodsID, token, sale.Epoch, lease.ID); err != nil {
		return fmt.Errorf("record the opening: %w", err)
	}
	opened, err := o.Redis.OpenGate(ctx, sale.GoodsID, sale.Epoch, openTime(lease, o.GateLifetime))
	if err == nil && !opened {
		err = ErrFenced
	}
	return err
}

// endOpening ends the opening that MySQL has of a sale, so that no worker renews it from now on. If
// the opening is on the master with the lease shutOn, this rebuild has shut that gate itself.
// Otherwise another master may have the gate open without knowing that it was replaced: endOpening
// waits until that gate must have ended. It then records that no gate is open, so that the next
// rebuild need not wait if this one fails.
func (r *Rebuilder) endOpening(
	ctx context.Context, goodsID int64, token Token, shutOn string,
) error {
	openOn, err := r.Store.EndOpening(ctx, goodsID, token.Number)
	if err != nil {
		return fmt.Errorf("end the opening: %w", err)
	}
	if openOn == "" || openOn == shutOn {
		return nil
	}
	r.Log.WarnContext(ctx, "waiting for the end of a gate that another master may have open",
		"goods_id", goodsID)
	err = r.slots.sleep(ctx, goodsID, cmp.Or(r.GateLifetime, longestLifetime)+gateMargin)
	if err != nil {
		return err
	}
	if err := r.Store.RecordOpening(ctx, goodsID, token.Number, token.Epoch, ""); err != nil {
		return fmt.Errorf("record that no gate is open: %w", err)
	}
	return nil
}

// Renewer renews the gates of all sales, where Redis can fail over. Several processes may run it; a
// gate that none renews ends after its lifetime.
type Renewer struct {
	Store Store
	Redis Redis
	// GateLifetime is the same in all processes.
	GateLifetime time.Duration
	Log          *slog.Logger
}

// Run works until ctx ends.
func (r *Renewer) Run(ctx context.Context) error {
	return workers.Every(ctx, r.GateLifetime/renewals, func(ctx context.Context) {
		err := r.RunOnce(ctx)
		workers.Warn(ctx, r.Log, "cannot renew gates, retrying; they end without that", err)
	})
}

// RunOnce renews each gate once.
func (r *Renewer) RunOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.GateLifetime)
	defer cancel()
	return r.Redis.RenewGates(ctx, func(
		ctx context.Context, l Lease,
	) ([]OpenSale, OpenTime, error) {
		now, err := r.Store.Now(ctx)
		if err != nil {
			return nil, OpenTime{}, err
		}
		sales, err := r.Store.OpenOn(ctx, l.ID, now.Add(-2*removeAfter))
		return sales, openTime(l, r.GateLifetime), err
	})
}
