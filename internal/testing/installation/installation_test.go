package installation

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/auth"
	"flashsale.dev/seckill/internal/testing/must"
)

// failing is a test that panics where it fails.
type failing struct{ testing.TB }

func (failing) Errorf(string, ...any) {}

func (failing) FailNow() { panic("failed") }

// TestDrained_FailsWhileOrdersArePending reads the ledger of an API whose orders are never written.
func TestDrained_FailsWhileOrdersArePending(t *testing.T) {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w,
			`{"code": 200, "reason": "OK", "data": {"total": 9, "pending": 1}}`)
	}))
	defer api.Close()
	r := &Installation{
		APIs:     []*Program{{Addr: strings.TrimPrefix(api.URL, "http://")}},
		Tokens:   must.Get(auth.New([]byte(Secret), 0, time.Now))(t),
		programs: "another build's", // whose answers are not checked against the document
	}
	require.Panics(t, func() { r.Drained(failing{t}, "7", 200*time.Millisecond) })
}
