package edge

import (
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/must"
)

const room = "/sales/7/waiting-room"

// roomStatus answers as the API does, with an ETag of the request's count.
func roomStatus(a *api) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "public, max-age=1")
		h.Set("Etag", fmt.Sprintf(`W/"%d"`, a.heard.Load()))
		h.Set("X-Request-Id", "ofTheAPI")
		saying(http.StatusOK, "OK", `{"phase":"running"}`)(w, r)
	}
}

// TestRoomStatus_IsAskedOnceASecond reads the status by many at once. The time that passes limits
// how often the API may be asked.
func TestRoomStatus_IsAskedOnceASecond(t *testing.T) {
	api := newAPI(t)
	api.says(roomStatus(api))
	e := start(t, open(api.addr()))
	began := time.Now()
	for range 5 {
		got := e.crowd(100, func(i int) answer {
			return e.ask(http.MethodGet, room, from(fmt.Sprintf("203.0.113.%d", i))...)
		})
		require.Equal(t, map[string]int{"OK": 100}, got)
	}
	asked := int(api.heard.Load())
	require.LessOrEqual(t, asked, 2+int(time.Since(began).Seconds()))
	before := api.heard.Load()
	require.Eventually(t, func() bool {
		e.ask(http.MethodGet, room)
		return api.heard.Load() > before
	}, patience, tick, "the status is never renewed")
}

// TestRoomStatus_QueryReachesTheCacheToo checks that a query, and another spelling of the path, do
// not lead past the cache. Nothing else limits these readings.
func TestRoomStatus_QueryReachesTheCacheToo(t *testing.T) {
	api := newAPI(t)
	api.says(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "public, max-age=3600")
		saying(http.StatusOK, "OK", `{}`)(w, r)
	})
	e := start(t, open(api.addr()))
	for _, path := range []string{
		room, room + "?x=1", room + "?x=2", "/sales/7/waiting%2Droom", "/sales/%37/waiting-room",
	} {
		require.Equal(t, "OK", e.ask(http.MethodGet, path).Reason, path)
	}
	require.EqualValues(t, 1, api.heard.Load())
}

// TestRoomStatus_HasNoPreconditions checks that the cache ignores preconditions, as the API does.
func TestRoomStatus_HasNoPreconditions(t *testing.T) {
	api := newAPI(t)
	api.says(roomStatus(api))
	e := start(t, open(api.addr()))
	for name, value := range map[string]string{
		"If-Match": `"x"`, "If-Unmodified-Since": "Sat, 29 Oct 1994 19:43:31 GMT",
	} {
		a := e.ask(http.MethodGet, room, name, value)
		require.Equal(t, "OK", a.Reason, "%s: %d %s", name, a.Status, a.Body)
	}
}

// TestRoomStatus_KnowsUnchangedOnes checks that the edge itself answers 304.
func TestRoomStatus_KnowsUnchangedOnes(t *testing.T) {
	api := newAPI(t)
	api.says(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "public, max-age=3600")
		w.Header().Set("Etag", `W/"same"`)
		saying(http.StatusOK, "OK", `{}`)(w, r)
	})
	e := start(t, open(api.addr()))
	e.ask(http.MethodGet, room)
	req := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, e.base+room,
		http.NoBody))(t)
	req.Header.Set("If-None-Match", `W/"same"`)
	res := must.Get(http.DefaultClient.Do(req))(t)
	require.NoError(t, res.Body.Close())
	require.Equal(t, http.StatusNotModified, res.StatusCode)
	require.EqualValues(t, 1, api.heard.Load())
}

// TestRoomStatus_OtherAnswersAreNotCached checks errors, calls that change something, and other
// sales.
func TestRoomStatus_OtherAnswersAreNotCached(t *testing.T) {
	api := newAPI(t)
	e := start(t, open(api.addr()))
	api.says(saying(http.StatusNotFound, "NOT_FOUND", `{}`))
	e.ask(http.MethodGet, room)
	e.ask(http.MethodGet, room)
	require.EqualValues(t, 2, api.heard.Load())
	api.says(roomStatus(api))
	for range 3 {
		e.ask(http.MethodPost, room, buyerHeaders(t, 1)...)
	}
	require.EqualValues(t, 5, api.heard.Load())
	e.ask(http.MethodGet, "/sales/8/waiting-room")
	e.ask(http.MethodGet, "/sales/9/waiting-room")
	require.EqualValues(t, 7, api.heard.Load())
}

// TestRoomPlace_FrequentPollsEndAtTheEdge uses the deployed limits. The elapsed time limits how
// many polls pass.
func TestRoomPlace_FrequentPollsEndAtTheEdge(t *testing.T) {
	api := newAPI(t)
	deployedLimits := string(must.Get(os.ReadFile(deployed + "/site/limits_place.conf"))(t))
	e := start(t, open(api.addr()).with("limits_place.conf", deployedLimits))
	began := time.Now()
	var refused answer
	got := countAnswers()
	for range 40 {
		a := e.ask(http.MethodGet, room+"/me", buyerHeaders(t, 1)...)
		got[a.Reason]++
		if a.Status == http.StatusTooManyRequests {
			refused = a
		}
	}
	require.LessOrEqual(t, got["OK"], 7+2*int(1+time.Since(began).Seconds()), got)
	require.EqualValues(t, got["OK"], api.heard.Load(), "what is refused must not reach the API")
	limited(t, refused)
	for i := range 40 { // behind the same address
		for _, headers := range [][]string{
			buyerHeaders(t, int64(2+i)), session(t, int64(102+i)), secureSession(t, int64(202+i)),
		} {
			require.Equal(t, "OK", e.ask(http.MethodGet, room+"/me", headers...).Reason)
		}
	}
	require.Equal(t, "OK", e.ask(http.MethodGet, "/sales/8/waiting-room/me",
		buyerHeaders(t, 1)...).Reason, "another sale")
}

// TestRoomJoin_FrequentJoinsEndAtTheEdge uses the deployed limits. They are not those of the
// status, which everybody behind one address may read.
func TestRoomJoin_FrequentJoinsEndAtTheEdge(t *testing.T) {
	api := newAPI(t)
	api.says(roomStatus(api))
	deployedLimits := string(must.Get(os.ReadFile(deployed + "/site/limits_place.conf"))(t))
	e := start(t, open(api.addr()).with("limits_place.conf", deployedLimits))
	for range 100 {
		for _, headers := range [][]string{nil, buyerHeaders(t, 1)} {
			require.Equal(t, "OK", e.ask(http.MethodGet, room, headers...).Reason)
		}
	}
	before, began := api.heard.Load(), time.Now()
	var refused answer
	got := countAnswers()
	for range 40 {
		a := e.ask(http.MethodPost, room, buyerHeaders(t, 1)...)
		got[a.Reason]++
		if a.Status == http.StatusTooManyRequests {
			refused = a
		}
	}
	require.LessOrEqual(t, got["OK"], 7+2*int(1+time.Since(began).Seconds()), got)
	require.EqualValues(t, got["OK"], api.heard.Load()-before, "a refused join reached the API")
	limited(t, refused)
	require.Equal(t, "OK", e.ask(http.MethodPost, room, buyerHeaders(t, 2)...).Reason)
	require.Equal(t, "OK", e.ask(http.MethodGet, room, buyerHeaders(t, 1)...).Reason)
}
