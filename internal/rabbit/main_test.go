package rabbit_test

import (
	"context"
	"errors"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"flashsale.dev/seckill/internal/rabbit"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/netfault"
	"flashsale.dev/seckill/internal/testing/servers"
)

// env has the broker that the tests without faults share.
var env = servers.NewSuite()

func TestMain(m *testing.M) { goleak.VerifyTestMain(env.Around(m)) }

// timeout bounds every wait.
const timeout = 90 * time.Second

// eventually requires that a condition becomes true.
func eventually(tb testing.TB, condition func() bool, message ...any) {
	tb.Helper()
	require.Eventually(tb, condition, timeout, time.Millisecond, message...)
}

func publish(tb testing.TB, p *rabbit.Publisher) error {
	return p.Publish(tb.Context(), goods, []byte("x"))
}

// awaitPublish publishes until the broker confirms.
func awaitPublish(tb testing.TB, p *rabbit.Publisher) {
	tb.Helper()
	require.NoError(tb, firstConfirm(tb.Context(), p))
}

// awaitError publishes until a publish fails with this error.
func awaitError(tb testing.TB, p *rabbit.Publisher, want error) {
	tb.Helper()
	eventually(tb, func() bool { return errors.Is(publish(tb, p), want) })
}

func firstConfirm(ctx context.Context, p *rabbit.Publisher) error {
	for deadline := time.Now().Add(timeout); ; time.Sleep(time.Millisecond) {
		err := p.Publish(ctx, goods, []byte("x"))
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

// goods is the sale that the tests publish for.
const goods = int64(42)

// runPublisher runs a publisher until cleanup and waits until it is up.
func runPublisher(tb testing.TB, opt rabbit.Options) *rabbit.Publisher {
	tb.Helper()
	p := must.Get(rabbit.NewPublisher(opt))(tb)
	run(tb, p)
	awaitUp(tb, p)
	return p
}

// run runs a publisher until stop or cleanup.
func run(tb testing.TB, p *rabbit.Publisher) (stop func()) {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(tb, <-ended)
		require.Error(tb, p.DownReason(), "a stopped publisher is down")
	})
	tb.Cleanup(stop)
	return stop
}

func awaitUp(tb testing.TB, p *rabbit.Publisher) {
	tb.Helper()
	eventually(tb, func() bool { return p.DownReason() == nil }, "the publisher never came up")
}

func openSource(tb testing.TB, opt rabbit.Options) *rabbit.Source {
	tb.Helper()
	return must.Get(rabbit.NewSource(opt))(tb)
}

// through starts a proxy to the broker and returns the URL of the broker through it.
func through(t *testing.T, address string) (*netfault.Proxy, string) {
	t.Helper()
	u := must.Get(url.Parse(address))(t)
	p := netfault.Start(t, u.Host)
	u.Host = p.Addr
	return p, u.String()
}

// silentBroker returns the URL of a server that accepts connections and never answers.
func silentBroker(t *testing.T) string {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = l.Close() })
	return "amqp://guest:secret@" + l.Addr().String() + "/" // only the kernel accepts
}
