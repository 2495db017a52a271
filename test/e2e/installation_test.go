package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/buyers"
	"flashsale.dev/seckill/internal/testing/installation"
)

// TestInstallation runs tests that each use sales of their own on one installation.
func TestInstallation(t *testing.T) {
	r := installation.Start(t, suite, installation.Options{APIs: 2, Consumers: 2})
	for _, test := range []struct {
		name string
		run  func(*testing.T, *installation.Installation)
	}{
		// This test is the first: an API that has served a rush has free heap that would hide
		// growth.
		{"Export_MemoryDoesNotGrowWithRows", exportMemory},
		{"Rush_ThousandUnitsForFiveThousandBuyers", rushOneEach},
		{"Rush_EachBuyerAsksFiveTimesAtOnce", rushFiveRequestsEach},
		{"Rush_QuantityThreeOfLimitFive", rushThreeEach},
		{"Rush_EachMessageDeliveredTwice", rushDoubledMessages},
		{"BadRequests_ChangeNothing", badRequestsChangeNothing},
		{"Seckillctl_RebuildsSale", ctlRebuildsSale},
		{"Seckillctl_SetsLimiterOnEachNode", ctlSetsLimiter},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, r) })
	}
	// This test is the last, because it ends the installation.
	t.Run("Programs_SIGTERMEndsEachInOrder", func(t *testing.T) {
		for _, p := range append(r.APIs, r.Consumers...) {
			require.NoError(t, p.Stop(), "%s", p.Log())
		}
	})
}

func rushOneEach(t *testing.T, r *installation.Installation) {
	got := rushOn(t, r, 1000, 1, buyers.Plan{Buyers: 5000, Concurrency: 200})
	got.exact(t, 1000, 1000, 1000)
	require.EqualValues(t, 1, got.facts.MostHeld)
}

func rushFiveRequestsEach(t *testing.T, r *installation.Installation) {
	got := rushOn(t, r, 1000, 1, buyers.Plan{Buyers: 5000, Concurrency: 40, ParallelPurchases: 5})
	got.exact(t, 1000, 1000, 1000)
	require.EqualValues(t, 1, got.facts.MostHeld)
}

func rushThreeEach(t *testing.T, r *installation.Installation) {
	got := rushOn(t, r, 999, 5,
		buyers.Plan{Buyers: 5000, Concurrency: 100, Quantity: 3, ParallelPurchases: 2})
	got.exact(t, 999, 333, 333)
	require.EqualValues(t, 3, got.facts.MostHeld)
}

func rushDoubledMessages(t *testing.T, r *installation.Installation) {
	doubled := r.DoubleMessages(t)
	got := rushOn(t, r, 1000, 1, buyers.Plan{Buyers: 5000, Concurrency: 200})
	got.exact(t, 1000, 1000, 1000)
	require.Positive(t, doubled.Load(), "no message was doubled")
}

// TestRush_SameOrdersOnMySQL repeats the rush of a thousand units with Oracle's MySQL as the
// database.
func TestRush_SameOrdersOnMySQL(t *testing.T) {
	rushOneEach(t, installation.Start(t, suite,
		installation.Options{APIs: 2, Consumers: 2, DSN: suite.MySQL(t).NewDatabase(t)}))
}
