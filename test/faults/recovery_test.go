package faults

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/loadgen/apiclient"
)

// patience is how long an installation may take to recover before the run has failed.
const patience = 90 * time.Second

// awaitRecovery waits until the sale's gate is open and no order has been pending for more than a
// second. It returns how long that took.
func (r *run) awaitRecovery(t *testing.T) time.Duration {
	t.Helper()
	began := time.Now()
	for problem := r.unrecovered(t); problem != ""; problem = r.unrecovered(t) {
		require.Less(t, time.Since(began), patience, "the sale has not recovered: %s", problem)
		time.Sleep(10 * time.Millisecond)
	}
	return time.Since(began)
}

// unrecovered names the cause of the wait for recovery. It returns "" once the sale has recovered.
func (r *run) unrecovered(t *testing.T) string {
	if _, err := r.ledger(t); err != nil {
		return err.Error()
	}
	f, err := r.RedisFacts(t, r.redis, r.goods)
	if err != nil {
		return err.Error()
	}
	if f.Oldest < time.Second {
		return ""
	}
	return fmt.Sprintf("%d pending, the oldest for %s; %d in the outbox",
		f.Pending, f.Oldest.Round(time.Millisecond), f.Outbox)
}

// ledger asks the APIs in turn until one answers.
func (r *run) ledger(t *testing.T) (l apiclient.Ledger, err error) {
	c := r.Merchant(t)
	defer c.HTTP.CloseIdleConnections()
	for i := range r.APIs {
		c.Base = r.Base(i)
		if l, err = c.Ledger(t.Context(), r.goods); err == nil {
			return l, nil
		}
	}
	return l, err
}
