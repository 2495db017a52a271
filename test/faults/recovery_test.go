package faults

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"flashsale.dev/seckill/internal/loadgen/apiclient"
)

// patience is how long an installation may take to recover before the run has failed.
const patience = 90 * time.Second

// slowRecovery is the length of a recovery beyond which the run logs the causes of the wait.
const slowRecovery = 10 * time.Second

// logSlowRecovery logs the causes of a slow recovery, and the end of each program's log.
func (r *run) logSlowRecovery(t *testing.T, recovery time.Duration, waited []string) {
	t.Logf("the sale took %s to recover; it waited for:\n%s",
		recovery.Round(time.Millisecond), strings.Join(waited, "\n"))
	for _, p := range slices.Concat(r.Consumers, r.APIs) {
		t.Logf("the end of a program's log:\n%s", p.Log())
	}
}

// awaitRecovery waits until the sale's gate is open and no order has been pending for more than a
// second. It returns how long that took, and for each second the cause of the wait.
func (r *run) awaitRecovery(t *testing.T) (recovery time.Duration, waited []string) {
	t.Helper()
	began := time.Now()
	for time.Since(began) < patience {
		problem := r.unrecovered(t)
		if problem == "" {
			return time.Since(began), waited
		}
		if at := time.Since(began); len(waited) < int(at.Seconds()) {
			waited = append(waited, fmt.Sprintf("%6.2f s: %s", at.Seconds(), problem))
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("the sale has not recovered in %s:\n%s", patience, strings.Join(waited, "\n"))
	return 0, nil
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
