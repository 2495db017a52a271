package browser

import (
	"context"
	"flag"
	"os"
	"testing"

	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/servers"
)

var (
	suite = servers.NewSuite()
	shots = flag.String("browser.shots", "", "directory for the README's pictures; empty: none")
)

func TestMain(m *testing.M) {
	flag.Parse()
	ctx, stop := context.WithCancel(context.Background())
	chrome = newBrowser(ctx)
	code := installation.Around(m, suite)
	chrome.close()
	stop()
	os.Exit(code)
}
