package faults

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"flashsale.dev/seckill/internal/loadgen/apiclient"
)

// patience is how long an installation may take to be well again before the run has failed.
const patience = 90 * time.Second

// slow is a recovery that wants an explanation.
const slow = 10 * time.Second

// saySlow shows what a recovery that took long was waiting for, and what the programs said in it.
func (s *scene) saySlow(t *testing.T, recovery time.Duration, waited []string) {
	t.Helper()
	t.Logf("the sale took %s to be well again; it waited for:\n%s", recovery.Round(time.Millisecond), strings.Join(waited, "\n"))
	for _, p := range slices.Concat(s.Consumers, s.APIs) {
		t.Logf("the end of a program's log:\n%s", p.Log())
	}
}

// recovers waits until the sale's gate is open and what is written is no older than a second, and tells how long that
// took, and second by second what it waited for.
func (s *scene) recovers(t *testing.T) (recovery time.Duration, waited []string) {
	t.Helper()
	began := time.Now()
	for time.Since(began) < patience {
		missing := s.missing(t)
		if missing == "" {
			return time.Since(began), waited
		}
		if at := time.Since(began); len(waited) < int(at.Seconds()) {
			waited = append(waited, fmt.Sprintf("%6.2f s: %s", at.Seconds(), missing))
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("the sale is not well again in %s:\n%s", patience, strings.Join(waited, "\n"))
	return 0, nil
}

// missing says what keeps the sale from being well; "" where it is.
func (s *scene) missing(t *testing.T) string {
	t.Helper()
	if _, err := s.ledger(t); err != nil {
		return err.Error()
	}
	f, err := s.RedisFacts(t, s.redis, s.goods)
	if err != nil {
		return err.Error()
	}
	if f.Oldest < time.Second {
		return ""
	}
	return fmt.Sprintf("%d pending, the oldest for %s; %d in the outbox", f.Pending, f.Oldest.Round(time.Millisecond), f.Outbox)
}

// ledger asks whichever API is up.
func (s *scene) ledger(t *testing.T) (l apiclient.Ledger, err error) {
	t.Helper()
	c := s.Merchant(t)
	defer c.HTTP.CloseIdleConnections()
	for i := range s.APIs {
		c.Base = s.Base(i)
		if l, err = c.Ledger(t.Context(), s.goods); err == nil {
			return l, nil
		}
	}
	return l, err
}
