package rabbit_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"flashsale.dev/seckill/internal/rabbit"
	"flashsale.dev/seckill/internal/testing/servers"
)

// The broker that tests share which do not harm it.
var env = servers.NewSuite()

func TestMain(m *testing.M) { goleak.VerifyTestMain(env.Around(m)) }

// patience bounds every wait for something that must come.
const patience = 90 * time.Second

// goods is what the tests publish for.
const goods = int64(42)

// runPublisher runs a publisher until cleanup and waits until it is up.
func runPublisher(tb testing.TB, opt rabbit.Options) *rabbit.Publisher {
	tb.Helper()
	p, err := rabbit.NewPublisher(opt)
	require.NoError(tb, err)
	run(tb, p)
	awaitUp(tb, p)
	return p
}

func run(tb testing.TB, p *rabbit.Publisher) {
	tb.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(tb.Context()))
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	tb.Cleanup(func() {
		stop()
		require.NoError(tb, <-ended)
		require.False(tb, p.Up(), "a publisher that has stopped is down")
	})
}

func awaitUp(tb testing.TB, p *rabbit.Publisher) {
	tb.Helper()
	require.Eventually(tb, p.Up, patience, 5*time.Millisecond, "the publisher never came up")
}

func openSource(tb testing.TB, opt rabbit.Options) *rabbit.Source {
	tb.Helper()
	s, err := rabbit.NewSource(opt)
	require.NoError(tb, err)
	return s
}
