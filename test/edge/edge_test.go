package edge

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/auth"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/apicheck"
	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
)

// edge is an nginx under test.
type edge struct {
	t     *testing.T
	nginx *servers.NginxServer
	base  string
}

type answer = apicheck.Reply

// ask makes a request. The header fields come in pairs.
func (e *edge) ask(method, path string, header ...string) answer {
	req := must.Get(http.NewRequestWithContext(e.t.Context(), method, e.base+path,
		http.NoBody))(e.t)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return readAnswer(e.t, req)
}

// path asks for a random path.
func (e *edge) path(goods string, header ...string) answer {
	return e.ask(http.MethodPost, "/randomPath?goodsId="+goods, header...)
}

// becomes waits until a request for a random path is answered with the given reason.
func (e *edge) becomes(reason, goods string, header ...string) {
	require.Eventually(e.t, func() bool {
		return e.path(goods, header...).Reason == reason
	}, patience, tick, reason)
}

// crowd makes n requests at once and counts the answers by reason.
func (e *edge) crowd(n int, ask func(i int) answer) map[string]int {
	var wait sync.WaitGroup
	answers := make([]answer, n)
	for i := range n {
		wait.Go(func() { answers[i] = ask(i) })
	}
	wait.Wait()
	return countAnswers(answers...)
}

func countAnswers(answers ...answer) map[string]int {
	counts := map[string]int{}
	for _, a := range answers {
		counts[a.Reason]++
	}
	return counts
}

// limited checks that an answer is a complete RATE_LIMITED of the contract.
func limited(t *testing.T, a answer) {
	require.Equal(t, http.StatusTooManyRequests, a.Status, a.Body)
	require.Equal(t, "RATE_LIMITED", a.Reason)
	require.Equal(t, http.StatusTooManyRequests, a.Code)
	require.Regexp(t, `^[1-9][0-9]*$`, a.Header.Get("Retry-After"))
	require.Regexp(t, `^"\w+";r=0;t=[1-9][0-9]*$`, a.Header.Get("RateLimit"))
	require.Regexp(t, `^"\w+";q=[1-9][0-9]*;w=[1-9][0-9]*$`, a.Header.Get("RateLimit-Policy"))
	shaped(t, a)
}

// shaped checks the parts that every answer has.
func shaped(t *testing.T, a answer) {
	require.NotEmpty(t, a.Message, a.Body)
	require.True(t, strings.HasPrefix(string(a.Data), "{"), a.Body)
	require.Equal(t, []string{a.RequestID}, a.Header.Values("X-Request-Id"))
	require.NotEmpty(t, a.RequestID)
	require.Equal(t, "application/json; charset=utf-8", a.Header.Get("Content-Type"))
	require.Equal(t, "nosniff", a.Header.Get("X-Content-Type-Options"))
	require.Equal(t, "no-store", a.Header.Get("Cache-Control"))
}

// api is a stub of the API. It counts the requests that reach it, and the test sets its answers.
type api struct {
	*httptest.Server
	heard atomic.Int64
	last  atomic.Pointer[http.Header]
	say   atomic.Pointer[http.HandlerFunc]
}

func newAPI(t *testing.T) *api {
	a := &api{}
	a.says(saying(http.StatusOK, "OK", `{}`))
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.heard.Add(1)
		a.last.Store(new(r.Header.Clone()))
		(*a.say.Load())(w, r)
	}))
	t.Cleanup(a.Close)
	return a
}

func (a *api) addr() string { return a.Listener.Addr().String() }

func (a *api) says(say http.HandlerFunc) { a.say.Store(&say) }

func (a *api) lastHeader() http.Header { return *a.last.Load() }

// saying answers as the API does.
func saying(status int, reason, data string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w,
			`{"code":%d,"reason":%q,"message":"of the API","data":%s,"requestId":"ofTheAPI"}`,
			status, reason, data)
	}
}

// signedAt is the time of every token: a user's token is then the same in each request. The edge
// counts by its end too, so a token of the next second would have a limit of its own.
var signedAt = time.Now()

// bearer is a header field with a token of the installation's secret.
func bearer(t *testing.T, id int64, role seckill.Role) []string {
	tokens := must.Get(auth.New([]byte(installation.Secret), 0,
		func() time.Time { return signedAt }))(t)
	token := must.Get(tokens.Sign(seckill.Actor{ID: fmt.Sprint(id), Role: role, Name: `A "sub":"7" Lee`},
		time.Hour))(t)
	return []string{"Authorization", "Bearer " + token}
}

func buyerHeaders(t *testing.T, id int64) []string {
	return bearer(t, id, seckill.Buyer)
}

// session is the cookie of a buyer who has signed in on the pages, without TLS.
func session(t *testing.T, id int64) []string {
	_, token, _ := strings.Cut(buyerHeaders(t, id)[1], " ")
	return []string{"Cookie", "lang=en; session=" + token}
}

// secureSession is the cookie over TLS, which a trusted proxy reports.
func secureSession(t *testing.T, id int64) []string {
	cookie := strings.Replace(session(t, id)[1], "session=", "__Host-session=", 1)
	return append(from("203.0.113.1"), "X-Forwarded-Proto", "https", "Cookie", cookie)
}

func from(address string) []string { return []string{"X-Forwarded-For", address} }

var suite = servers.NewSuite()

const (
	patience = 90 * time.Second
	tick     = 10 * time.Millisecond
)

func TestMain(m *testing.M) { os.Exit(installation.Around(m, suite)) }

// readAnswer sends a request and decodes the response.
func readAnswer(t *testing.T, req *http.Request) answer {
	a := must.Get(apicheck.ReadReply(must.Get(http.DefaultClient.Do(req))(t)))(t)
	require.True(t, strings.HasPrefix(a.Body, "{"), a.Body)
	return a
}
