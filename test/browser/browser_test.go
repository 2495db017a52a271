package browser

import (
	"cmp"
	"context"
	"flag"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/servers"
)

// browser is one chromium for all tests. Each visitor has its own profile in it.
type browser struct {
	once  sync.Once
	ctx   context.Context
	ends  []func()
	trust error

	mu   sync.Mutex
	idle []profile
}

// profile is a tab with cookies and storage of its own.
type profile struct {
	ctx context.Context
	end context.CancelFunc
}

var chrome *browser

// chromium returns Debian's chromium for tests, or the one that CHROMIUM names. It has Chromium's
// engine without the user interface, and takes less processor time.
func chromium() string { return cmp.Or(os.Getenv("CHROMIUM"), "/usr/bin/chromium-headless-shell") }

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
		for _, name := range []string{
			"disable-quic", "disable-background-networking", "disable-component-update",
			"disable-sync", "hide-scrollbars",
		} {
			options = append(options, chromedp.Flag(name, true))
		}
		if os.Geteuid() == 0 {
			options = append(options, chromedp.ModifyCmdFunc(keepPriority))
		}
		alloc, endAlloc := chromedp.NewExecAllocator(b.ctx, options...)
		ctx, endBrowser := chromedp.NewContext(alloc)
		b.ends = []func(){endBrowser, endAlloc, func() { _ = os.RemoveAll(profile) }}
		b.ctx, b.trust = ctx, chromedp.Do(ctx)
	})
	require.NoError(t, b.trust, "start %s (make services installs it)", chromium())
	return b.ctx
}

// profile returns an empty profile. It takes one that a visitor has left, if there is one: the
// process, the caches and the compiled scripts of a new one cost more than most tests.
func (b *browser) profile(t testing.TB) profile {
	t.Helper()
	ctx := b.start(t)
	b.mu.Lock()
	defer b.mu.Unlock()
	if last := len(b.idle) - 1; last >= 0 {
		p := b.idle[last]
		b.idle = b.idle[:last]
		return p
	}
	var p profile
	p.ctx, p.end = chromedp.NewContext(ctx, chromedp.WithNewBrowserContext())
	return p
}

// leave gives back a profile that is empty again.
func (b *browser) leave(p profile) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.idle = append(b.idle, p)
}

// keepPriority takes the right to change priorities from a browser that root starts. It would run
// ahead of all other processes, and the servers of other tests would miss their deadlines. setpriv
// is part of util-linux.
func keepPriority(browser *exec.Cmd) {
	browser.Args = append([]string{
		"setpriv", "--inh-caps=-sys_nice", "--bounding-set=-sys_nice", browser.Path,
	}, browser.Args[1:]...)
	browser.Path = "/usr/bin/setpriv"
	browser.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // as chromedp does
}

func (b *browser) close() {
	for _, end := range b.ends {
		end()
	}
}

var (
	suite = servers.NewSuite()
	shots = flag.String("browser.shots", "", "directory for the README's pictures; empty: none")
	pages = flag.String("browser.pages", "",
		"directory for a picture of every checked page on three screens; empty: none")
)

func TestMain(m *testing.M) {
	flag.Parse()
	ctx, stop := context.WithCancel(context.Background())
	chrome = &browser{ctx: ctx}
	code := installation.Around(m, suite)
	chrome.close()
	stop()
	os.Exit(code)
}
