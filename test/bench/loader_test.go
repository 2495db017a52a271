package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// play sends n requests over so many connections, each its next one when the last is answered, and returns the time it took.
// It knows no more of HTTP/1.1 than it needs, so that it leaves the processor to those it measures. Any status but
// the one wanted is an error.
func play(b *testing.B, addr string, connections, n, want int, request func(i int) []byte) time.Duration {
	b.Helper()
	clients := make([]*client, connections)
	for i := range clients {
		conn, err := net.Dial("tcp", addr) //nolint:noctx // loopback
		require.NoError(b, err)
		defer conn.Close()
		require.NoError(b, conn.SetDeadline(time.Now().Add(time.Minute)))
		clients[i] = &client{conn: conn, in: bufio.NewReaderSize(conn, 4<<10)}
	}
	var next atomic.Int64
	var all errgroup.Group
	began := time.Now()
	for _, c := range clients {
		all.Go(func() error {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				if err := c.ask(request(int(i)), want); err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(b, all.Wait())
	return time.Since(began)
}

type client struct {
	conn net.Conn
	in   *bufio.Reader
}

func (c *client) ask(request []byte, want int) error {
	if _, err := c.conn.Write(request); err != nil {
		return err
	}
	status, length, err := c.head()
	if err != nil {
		return err
	}
	if status != want {
		body := make([]byte, length)
		_, _ = io.ReadFull(c.in, body)
		return fmt.Errorf("status %d, not %d: %s", status, want, body)
	}
	_, err = c.in.Discard(length)
	return err
}

var contentLength = []byte("Content-Length: ")

// head reads the status and the headers.
func (c *client) head() (status, length int, err error) {
	for first := true; ; first = false {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return 0, 0, err
		}
		switch {
		case first:
			status, err = strconv.Atoi(string(line[len("HTTP/1.1 "):][:3]))
		case bytes.HasPrefix(line, contentLength):
			length, err = strconv.Atoi(string(bytes.TrimSpace(line[len(contentLength):])))
		case len(line) == len("\r\n"):
			return status, length, nil
		}
		if err != nil {
			return 0, 0, err
		}
	}
}

// post writes a request whose fields are in its target.
func post(target, token string) []byte {
	return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: sale\r\nAuthorization: Bearer %s\r\nContent-Length: 0\r\n\r\n", target, token)
}
