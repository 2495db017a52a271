package httpapi

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/httpapi/params"
)

func TestPage_CursorsRoundTrip(t *testing.T) {
	l := page([]int{1, 2, 3}, 2, func(i int) int { return i },
		func(int) string { return saleKey(77) })
	require.Equal(t, []int{1, 2}, l.Items)
	p := &request{Fields: params.New([]string{"cursor"})}
	require.NoError(t, p.Read(nil, httptest.NewRequest("GET", "/x?cursor="+*l.NextCursor, nil)))
	require.Equal(t, int64(77), p.cursorID())
	require.NoError(t, p.Err())
	require.Empty(t, p.cursor(orderCursor, isOrderSn), "another list refuses the cursor")
	require.Error(t, p.Err())
}

func TestRetryAfter_RoundsUp(t *testing.T) {
	require.Equal(t, "1", retryAfter(0))
	require.Equal(t, "1", retryAfter(1e9))
	require.Equal(t, "2", retryAfter(1e9+1))
}

// TestThrottle_AllowsOneEventPerSecond also checks that the next event reports how many the
// throttle held back.
func TestThrottle_AllowsOneEventPerSecond(t *testing.T) {
	var w throttle
	start := time.Unix(1000, 0)
	for i, c := range []struct {
		after time.Duration
		held  int64
		ok    bool
	}{{0, 0, true}, {
		0, 0, false,
	}, {999 * time.Millisecond, 0, false}, {time.Second, 2, true}, {time.Hour, 0, true}} {
		held, ok := w.allow(start.Add(c.after))
		require.Equal(t, c.ok, ok, i)
		require.Equal(t, c.held, held, i)
	}
}
