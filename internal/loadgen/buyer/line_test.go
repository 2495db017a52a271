package buyer

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/loadgen/apiclient"
	"flashsale.dev/seckill/internal/testing/must"
)

// TestBuyAndPay_FirstCallIsRecordedWhenRetriesOutlastTheTurn checks a turn in which the API answers
// only 429. The verdict needs the time of the first call to find it.
func TestBuyAndPay_FirstCallIsRecordedWhenRetriesOutlastTheTurn(t *testing.T) {
	_, b := startFakeAPI(t, func(string, int) (int, string) {
		return http.StatusTooManyRequests, "WAITING"
	})
	b.Room, b.MaxRetryWait = &Room{Habit: Prompt}, 10*time.Millisecond
	var r Result
	r.Place.Until = time.Now().Add(200 * time.Millisecond)
	require.NoError(t, b.buyAndPay(t.Context(), &r))
	require.Equal(t, GaveUp, r.Outcome)
	require.True(t, r.Place.Tried.Before(r.Place.Until))
	require.False(t, r.Place.Decided.Before(r.Place.Until))
}

func TestBuyAndPay_StoppedBuyerHasNoDecision(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	_, b := startFakeAPI(t, func(string, int) (int, string) {
		stop()
		return http.StatusTooManyRequests, "WAITING"
	})
	b.Room = &Room{Habit: Prompt}
	var r Result
	r.Place.Until = time.Now().Add(time.Minute)
	require.ErrorIs(t, b.buyAndPay(ctx, &r), context.Canceled)
	require.False(t, r.Place.Tried.IsZero())
	require.Zero(t, r.Place.Decided)
}

// TestBuyAndPay_TurnStopsWhileTheSaleIsShut checks a turn whose end the API puts off, because it
// could not serve the buyer.
func TestBuyAndPay_TurnStopsWhileTheSaleIsShut(t *testing.T) {
	var shut atomic.Bool
	shut.Store(true)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/waiting-room/me"):
			shut.Store(false)
		case shut.Load():
			w.WriteHeader(http.StatusServiceUnavailable)
		case strings.HasSuffix(r.URL.Path, "/decrStock"):
			w.WriteHeader(http.StatusAccepted)
		}
		fmt.Fprintf(w, `{"code": 0, "reason": "SAID", "data": {"state": "admitted", "randomPath": "p",
			"admittedUntil": %q, "orderSn": "sn-1", "status": "created"}}`,
			time.Now().Add(time.Minute).Format(time.RFC3339))
	}))
	defer server.Close()
	httpClient := apiclient.NewHTTP(1)
	defer httpClient.CloseIdleConnections()
	b := Buyer{
		Client: apiclient.Client{Base: server.URL, HTTP: httpClient}, GoodsID: "1", Quantity: 1,
		Patience: time.Minute, RetryErrors: true, MaxRetryWait: time.Millisecond,
		Room: &Room{Habit: Prompt},
	}
	var r Result
	r.Place.Until = time.Now().Add(50 * time.Millisecond)
	until := r.Place.Until
	r.Place.Seen = time.Now()
	require.NoError(t, b.buyAndPay(t.Context(), &r))
	require.Equal(t, Won, r.Outcome)
	require.Equal(t, until, r.Place.Until, "the verdict counts from the first end")
}

// TestBuy_FailedLeaveReturnsNoUnit checks that only a leave that the API confirmed counts as the
// return of a unit.
func TestBuy_FailedLeaveReturnsNoUnit(t *testing.T) {
	for _, status := range []int{http.StatusOK, http.StatusNotFound} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(
				func(w http.ResponseWriter, r *http.Request) {
					if r.Method == http.MethodDelete {
						w.WriteHeader(status)
					}
					fmt.Fprintf(w, `{"code": 0, "reason": "SAID", "data": {"number": 1, "position": 1,
						"state": "admitted", "admittedUntil": %q}}`,
						time.Now().Add(time.Minute).Format(time.RFC3339))
				}))
			defer server.Close()
			httpClient := apiclient.NewHTTP(1)
			defer httpClient.CloseIdleConnections()
			b := Buyer{
				Client: apiclient.Client{Base: server.URL, HTTP: httpClient}, GoodsID: "1",
				Patience: time.Minute, Room: &Room{Habit: Leaver},
			}
			r := must.Get(b.Buy(t.Context()))(t)
			require.Equal(t, Left, r.Outcome)
			require.Equal(t, status != http.StatusOK, r.Place.Left.IsZero())
		})
	}
}
