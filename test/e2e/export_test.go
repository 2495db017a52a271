package e2e

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/must"
)

// exportMemory exports a small sale, and one with ten times as many orders. Each row must arrive.
// The memory of the API process must not grow with the number of rows.
func exportMemory(t *testing.T, r *installation.Installation) {
	const rows = 50_000
	few, many := r.PutUp(t, 1, 1), r.PutUp(t, 1, 1)
	fillOrders(t, r, few, rows/10)
	fillOrders(t, r, many, rows)
	// The first exports set up connections. They export as many rows as the large export, which
	// brings the heap to the size at which Go collects it.
	for range 10 {
		export(t, r, few)
	}
	small, large := lowestPeak(t, r, few), lowestPeak(t, r, many)
	t.Logf("%d rows, %d bytes in %s, peak RSS %.1f MB; %d rows, %d bytes in %s, peak RSS %.1f MB",
		small.rows, small.bytes, small.took.Round(time.Millisecond), small.peak, large.rows,
		large.bytes, large.took.Round(time.Millisecond), large.peak)
	require.Equal(t, rows/10, small.rows)
	require.Equal(t, rows, large.rows)
	require.Less(t, large.peak-small.peak, float64(large.bytes)/1e6,
		"MB more for ten times the rows, which are as large as the limit")
}

// lowestPeak exports a sale five times. It returns the last export with the lowest of the peaks: a
// peak depends on when Go collects garbage and on the API's other work, but an export that holds
// all rows in memory raises each.
func lowestPeak(t *testing.T, r *installation.Installation, goods string) exported {
	e := export(t, r, goods)
	for range 4 {
		again := export(t, r, goods)
		again.peak = min(again.peak, e.peak)
		e = again
	}
	return e
}

// exported has the measurements of one export.
type exported struct {
	rows, bytes int
	took        time.Duration
	peak        float64 // peak resident memory of the API, in MB
}

func export(t *testing.T, r *installation.Installation, goods string) exported {
	// proc(5): writing 5 resets the peak to the current memory.
	require.NoError(t, os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", r.APIs[0].Pid()),
		[]byte("5"), 0))
	req := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet,
		r.Base(0)+"/admin/sales/"+goods+"/orders?format=csv", nil))(t)
	req.Header.Set("Authorization", "Bearer "+r.Merchant(t).Token)
	began := time.Now()
	res := must.Get(http.DefaultClient.Do(req))(t)
	defer res.Body.Close()
	require.Equal(t, http.StatusOK, res.StatusCode)
	e := exported{rows: -1} // the header line is no order
	last := "~"
	for scanner := bufio.NewScanner(res.Body); scanner.Scan(); e.rows++ {
		sn, _, _ := strings.Cut(scanner.Text(), ",")
		require.True(t, e.rows < 0 || sn < last, "newest first, each once: %s after %s", sn, last)
		if e.rows >= 0 {
			last = sn
		}
		e.bytes += len(scanner.Bytes()) + 1
	}
	e.took, e.peak = time.Since(began), r.APIs[0].Memory(t, "VmHWM")
	return e
}

// fillOrders inserts cancelled orders of a goods into MySQL. They hold no units, so the sale's
// ledger stays balanced.
func fillOrders(t *testing.T, r *installation.Installation, goods string, n int) {
	const chunk = 1000
	for from := 0; from < n; from += chunk {
		var rows []string
		for i := from; i < min(n, from+chunk); i++ {
			rows = append(rows,
				fmt.Sprintf("(%s,'e%061d',%d,1,1,1999,'cancelled','','Ann Lee','+4479460123456',1762862400000,1762863300000,NULL,1762862460000)", goods, i, i+1))
		}
		r.ExecSQL(t, `INSERT INTO orders (goods_id, order_sn, buyer_id, epoch, quantity, amount,
			status, failure_reason, name, phone, created_at, pay_by, paid_at, closed_at) VALUES `+
			strings.Join(rows, ","))
	}
}
