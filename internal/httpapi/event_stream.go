package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"flashsale.dev/seckill/internal/apierror"
)

// Bounds of event streams. After streamLifetime, or when its token expires, the client reconnects
// with Last-Event-ID and with a token that is verified again.
const (
	maxStreamsOfUser = 5
	maxStreamsOfNode = 10_000
	streamMemory     = 96 << 10 // bytes of the memory limit per stream, which uses half of them
	streamLifetime   = 30 * time.Minute
	heartbeat        = 15 * time.Second
	writeDeadline    = 10 * time.Second // a client that takes no data for so long is disconnected
	refreshTimeout   = 2 * time.Second
)

// streams counts the open event streams of this node. Each holds a connection and a goroutine for
// up to half an hour. The limits prevent a few users from taking all of them.
type streams struct {
	max    int // of all users together
	mu     sync.Mutex
	all    int
	byUser map[string]int
}

// newStreams bounds the streams by Go's memory limit too. Where they take most of it, Go collects
// garbage all the time.
func newStreams(memoryLimit int64) streams {
	return streams{max: int(min(maxStreamsOfNode, memoryLimit/streamMemory))}
}

// acquire counts a new stream, or refuses it. The caller must release a counted stream. It checks
// the node's limit first, because another node may have room.
func (s *streams) acquire(user string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all >= s.max {
		return apierror.NewUnavailable("too many event streams are open on this node", nil)
	}
	if s.byUser[user] >= maxStreamsOfUser {
		e := apierror.New(apierror.RateLimited,
			"you have %d event streams open; close one first", maxStreamsOfUser)
		e.RetryAfter = time.Second
		return e
	}
	if s.byUser == nil {
		s.byUser = make(map[string]int)
	}
	s.all, s.byUser[user] = s.all+1, s.byUser[user]+1
	return nil
}

// release must be called once for each successful acquire.
func (s *streams) release(user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all--
	if s.byUser[user]--; s.byUser[user] <= 0 {
		delete(s.byUser, user)
	}
}

// eventStream writes events to one client.
type eventStream struct {
	*api
	c *gin.Context
}

// stream counts a stream and returns the response that serves it. A stream outlives the call's own
// deadline, so serve gets the context of the connection, limited to streamLifetime and the token's
// expiry.
func (a *api) stream(r *request, serve func(ctx context.Context, s eventStream)) (response, error) {
	if err := a.streams.acquire(r.actor.ID); err != nil {
		if apierror.ReasonOf(err) == apierror.RateLimited {
			h := r.gin.Writer.Header()
			h.Set("RateLimit-Policy", fmt.Sprintf(`"streams";q=%d;qu="concurrent-requests"`,
				maxStreamsOfUser))
			h.Set("RateLimit", `"streams";r=0;t=1`)
		}
		return response{}, err
	}
	return response{stream: func(c *gin.Context) {
		defer a.streams.release(r.actor.ID)
		ctx, cancel := context.WithTimeout(c.Request.Context(), streamLifetime)
		defer cancel()
		if expiry := requestContextOf(ctx).tokenExpiry; !expiry.IsZero() {
			ctx, cancel = context.WithDeadline(ctx, expiry)
			defer cancel()
		}
		serve(ctx, eventStream{api: a, c: c})
	}}, nil
}

// start sends the head of the response and the client's reconnection delay.
func (s eventStream) start() bool {
	h := s.c.Writer.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("X-Accel-Buffering", "no") // nginx would hold events back
	return s.write("retry: 1000\n\n")
}

// write sends text at once and reports whether the client took it.
func (s eventStream) write(text string) bool {
	rc := http.NewResponseController(s.c.Writer)
	_ = rc.SetWriteDeadline(time.Now().Add(writeDeadline)) // a test's recorder has no deadlines
	if _, err := s.c.Writer.WriteString(text); err != nil {
		return false
	}
	return rc.Flush() == nil
}
