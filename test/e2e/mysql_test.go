package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/loadgen/buyer"
	"flashsale.dev/seckill/test/rig"
)

// TestTheSameOrdersOnMySQL is the rush of a thousand units on Oracle's MySQL in MariaDB's place.
func TestTheSameOrdersOnMySQL(t *testing.T) {
	r := rig.Start(t, suite, rig.Options{APIs: 2, Consumers: 2, DSN: suite.MySQL(t).NewDatabase(t)})
	got := rushOn(t, r, 1000, 1, buyer.Plan{Buyers: 5000, Concurrency: 200})
	got.exact(t, 1000, 1000, 1000)
	require.EqualValues(t, 1, got.facts.MostHeld)
}
