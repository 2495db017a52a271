package browser

import (
	"context"
	"os"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// browser is one chromium for all tests. Each visitor has its own profile in it.
type browser struct {
	once  sync.Once
	ctx   context.Context
	ends  []func()
	trust error
}

var chrome *browser

func newBrowser(ctx context.Context) *browser { return &browser{ctx: ctx} }

// chromium returns Debian's chromium, or the one that CHROMIUM names.
func chromium() string {
	if path := os.Getenv("CHROMIUM"); path != "" {
		return path
	}
	return "/usr/bin/chromium"
}

// start starts the browser at its first use.
func (b *browser) start(t testing.TB) context.Context {
	t.Helper()
	b.once.Do(func() {
		profile, err := os.MkdirTemp("", "seckill-browser-")
		if err != nil {
			b.trust = err
			return
		}
		options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium()),
			chromedp.UserDataDir(profile), chromedp.Headless, chromedp.NoSandbox,
			chromedp.DisableGPU, chromedp.NoFirstRun, chromedp.Flag("force-color-profile", "srgb"))
		for _, flag := range []string{
			"disable-quic", "disable-background-networking", "disable-component-update",
			"disable-sync", "hide-scrollbars",
		} {
			options = append(options, chromedp.Flag(flag, true))
		}
		alloc, endAlloc := chromedp.NewExecAllocator(b.ctx, options...)
		ctx, endBrowser := chromedp.NewContext(alloc)
		b.ends = []func(){endBrowser, endAlloc, func() { _ = os.RemoveAll(profile) }}
		b.ctx, b.trust = ctx, chromedp.Do(ctx)
	})
	require.NoError(t, b.trust, "start %s (make services installs it)", chromium())
	return b.ctx
}

func (b *browser) close() {
	for _, end := range b.ends {
		end()
	}
}
