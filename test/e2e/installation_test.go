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
		{"Rush_EachBuyerAsksFiveTimesAtOnce", func(t *testing.T, r *installation.Installation) {
			rushSells(t, r, 1000, 1, buyers.Plan{Concurrency: 40, ParallelPurchases: 5})
		}},
		{"Rush_QuantityThreeOfLimitFive", func(t *testing.T, r *installation.Installation) {
			rushSells(t, r, 999, 5,
				buyers.Plan{Concurrency: 100, Quantity: 3, ParallelPurchases: 2})
		}},
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
	rushSells(t, r, 1000, 1, buyers.Plan{Concurrency: 200})
}

// rushSells runs a rush of five thousand buyers. It requires that every unit is sold, and that each
// winner holds one order of the plan's quantity.
func rushSells(t *testing.T, r *installation.Installation, units, limit int64, p buyers.Plan) {
	p.Buyers, p.Quantity = 5000, max(1, p.Quantity)
	got, orders := rushFor(t, r, r.PutUp(t, units, limit), p), units/p.Quantity
	got.exact(t, units, orders, orders)
	require.Equal(t, p.Quantity, got.facts.MostHeld)
}

func rushDoubledMessages(t *testing.T, r *installation.Installation) {
	doubled := r.DoubleMessages(t)
	rushOneEach(t, r)
	require.Positive(t, doubled.Load(), "no message was doubled")
}

// TestRush_SameOrdersOnMySQL repeats the rush of a thousand units with Oracle's MySQL as the
// database.
func TestRush_SameOrdersOnMySQL(t *testing.T) {
	rushOneEach(t, installation.Start(t, suite,
		installation.Options{APIs: 2, Consumers: 2, DSN: suite.MySQL(t).NewDatabase(t)}))
}
