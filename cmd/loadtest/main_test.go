package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"flashsale.dev/seckill/internal/app"
	"flashsale.dev/seckill/internal/app/embedded"
	"flashsale.dev/seckill/internal/config"
	"flashsale.dev/seckill/internal/loadgen"
	"flashsale.dev/seckill/internal/loadgen/buyer"
	"flashsale.dev/seckill/internal/loadgen/report"
	"flashsale.dev/seckill/internal/testing/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testSecret = "a secret that only the tests know long enough"

// open starts the whole flash sale in this process, wired as in standalone. around may wrap the
// API's handler.
func open(t *testing.T, around func(http.Handler) http.Handler) string {
	t.Helper()
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	up := must.Get(embedded.Start(t.Context(), t.TempDir(), 0, log))(t)
	settings := app.Settings{
		OrderSecrets: [][]byte{[]byte(testSecret)}, PublishTimeout: 2 * time.Second,
		PaymentTimeout: 15 * time.Minute, BatchSize: 500, AdmissionTimeout: 2 * time.Second,
		Currency: "CNY",
	}
	access := app.APISettings{Config: config.Config{Auth: config.Auth{JWTSecret: testSecret}}}
	api := must.Get(app.NewAPI(up.Parts, settings, access))(t)
	handler := http.Handler(api.Handler)
	if around != nil {
		handler = around(handler)
	}
	server := httptest.NewUnstartedServer(handler)
	server.Config = api.Server("", log)
	server.Config.Handler = handler
	server.Start()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() {
		ended <- app.Run(ctx, 10*time.Second, app.NewWorkers(up.Parts, settings), api.Workers())
	}()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
		server.Close()
		require.NoError(t, up.Close())
	})
	return server.URL
}

// loadtest runs the program against an API.
func loadtest(t *testing.T, url string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, trouble bytes.Buffer
	args = append([]string{"-addr", url, "-settle", "20s"}, args...)
	err = run(t.Context(), args, []string{"SECKILL_JWT_SECRET=" + testSecret}, &out, &trouble)
	return out.String(), trouble.String(), err
}

func TestRun_EveryLoopSellsTheStockAndPasses(t *testing.T) {
	url := open(t, nil)
	page := filepath.Join(t.TempDir(), "report.html")
	for name, args := range map[string][]string{
		"closed": {"-users", "30", "-ramp", "100ms"},
		"open":   {"-rate", "1000", "-ramp", "100ms"},
		"spike":  {"-users", "10", "-spike", "200", "-start-in", "300ms"},
	} {
		t.Run(name, func(t *testing.T) {
			out, stderr, err := loadtest(t, url, append(args, "-buyers", "400", "-stock", "100",
				"-impatient", "0.3", "-hostile", "0.2", "-json", "-", "-html", page)...)
			require.NoError(t, err, stderr)
			var r report.Report
			require.NoError(t, json.Unmarshal([]byte(out), &r), out)
			require.True(t, r.Verdict.OK)
			require.Equal(t, 100, r.Count(buyer.Won))
			require.Equal(t, []int{400, 100}, []int{r.Arrived, r.Verdict.Orders["created"]})
			require.Positive(t,
				r.Outcomes[loadgen.Impatient][buyer.Won]+r.Outcomes[loadgen.Polite][buyer.Won])
			require.Positive(t, r.Outcomes[loadgen.Hostile]["all refused"])
			require.Contains(t, stderr, "verdict",
				"the text goes to standard error beside the JSON")
			require.Contains(t, stderr, "ok   every hostile call was refused")
			html := must.Get(os.ReadFile(page))(t)
			require.Contains(t, string(html), "PASS: 400 buyers")
		})
	}
}

// TestRun_WaitingRoomIsFair plays a small rush on a sale with a waiting room.
func TestRun_WaitingRoomIsFair(t *testing.T) {
	out, stderr, err := loadtest(t, open(t, nil), "-room", "-buyers", "400", "-rate", "300",
		"-start-in", "1s", "-stock", "30", "-leavers", "0.2", "-sleepers", "0.1", "-unpaid", "0",
		"-hostile", "0.02", "-return-within", "5s", "-json", "-")
	require.NoError(t, err, stderr)
	var r report.Report
	require.NoError(t, json.Unmarshal([]byte(out), &r), out)
	require.Equal(t, 30, r.Count(buyer.Won))
	require.Equal(t, 30, r.Verdict.Orders["paid"])
	require.Positive(t, r.Verdict.Line.Returned)
	require.GreaterOrEqual(t, r.Verdict.Line.Admitted, 30+r.Verdict.Line.Returned-1)
}

func TestRun_LoadsExistingSale(t *testing.T) {
	url := open(t, nil)
	o := options{
		Plan: loadgen.Plan{Bases: []string{url}}, stock: 50, limit: 2, timeout: time.Minute,
	}
	p := must.Get(newLoadTest(o, testSecret))(t)
	require.NoError(t, p.setUp(t.Context()))
	for range 2 { // the second load finds the first load's orders and no stock
		_, stderr, err := loadtest(t, url, "-goods", p.GoodsID, "-buyers", "60", "-users", "10")
		require.NoError(t, err, stderr)
	}
	_, _, err := loadtest(t, url, "-goods", "1", "-buyers", "1")
	require.ErrorContains(t, err, "find the sale")
	p.http.CloseIdleConnections()
}

// TestRun_ForgottenOrderFails checks that a 202 without an order violates a rule.
func TestRun_ForgottenOrderFails(t *testing.T) {
	var purchases atomic.Int64
	url := open(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/decrStock") && purchases.Add(1) == 20 {
				w.WriteHeader(http.StatusAccepted)
				_, _ = io.WriteString(w,
					`{"code": 202, "reason": "QUEUED", "data": {"orderSn": "never-written"}}`)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	out, _, err := loadtest(t, url, "-buyers", "100", "-users", "5", "-stock", "50", "-patience",
		"2s")
	require.ErrorIs(t, err, errViolated)
	require.True(t, strings.HasPrefix(out, "FAIL: "), out)
	require.Contains(t, out, "never-written")
	require.Contains(t, out, "VIOLATED 1 times: every 202 has an order")
}

func TestRun_TimeoutEndsEarlyAndChecks(t *testing.T) {
	url := open(t, nil)
	out, _, err := loadtest(t, url, "-rate", "50", "-buyers", "5000", "-timeout", "1s")
	require.ErrorIs(t, err, errCutShort)
	require.NotErrorIs(t, err, errViolated)
	require.Contains(t, out, "note       the load ended early")
	require.Contains(t, out, "ok   every 202 has an order")
}

// TestRun_TimeoutEndsLineWithoutViolation ends a load before and after the draw of its line.
func TestRun_TimeoutEndsLineWithoutViolation(t *testing.T) {
	url := open(t, nil)
	for _, startIn := range []string{"0s", "1h"} {
		_, stderr, err := loadtest(t, url, "-room", "-rate", "100", "-buyers", "5000", "-start-in",
			startIn, "-timeout", "1s", "-return-within", "5s")
		require.ErrorIs(t, err, errCutShort, stderr)
		require.NotErrorIs(t, err, errViolated)
	}
}

func TestRun_UnreachableAPIIsNamed(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	_, _, err := loadtest(t, server.URL)
	require.ErrorContains(t, err, "is the API up at")
}

func TestProgress_PrintsLineEveryFiveSeconds(t *testing.T) {
	var out bytes.Buffer
	show := progress(&out, 100)
	for i := range 4 {
		show(loadgen.Point{At: float64(2 * (i + 1)), Span: 2, Arrived: 20, Done: 10, Limited: 4})
	}
	require.Equal(t, 2, strings.Count(out.String(), "\n"), out.String())
	require.Contains(t, out.String(), "10 of 100 buyers done, 10 started/s")
	require.Contains(t, out.String(), "429 2/s")
}
