package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"flashsale.dev/seckill/internal/testing/must"
)

// play sends n requests over the given number of connections. Any status but the wanted one is an
// error.
func play(b *testing.B, addr string, connections, n, want int, request func(i int) []byte) {
	b.Helper()
	crowd(b, addr, connections, n, func(c *client, i int) error {
		return c.ask(request(i), want)
	})
}

// crowd does n pieces of work over the given number of connections. Each connection starts its next
// piece when its last one is done.
func crowd(
	b *testing.B, addr string, connections, n int, work func(c *client, i int) error,
) time.Duration {
	b.Helper()
	clients := make([]*client, connections)
	for i := range clients {
		conn := must.Get(net.Dial("tcp", addr))(b)
		defer conn.Close()
		require.NoError(b, conn.SetDeadline(time.Now().Add(2*time.Minute)))
		clients[i] = &client{conn: conn, in: bufio.NewReaderSize(conn, 4<<10)}
	}
	var next atomic.Int64
	var all errgroup.Group
	began := time.Now()
	for _, c := range clients {
		all.Go(func() error {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				if err := work(c, int(i)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := all.Wait()
	took := time.Since(began)
	require.NoError(b, err)
	return took
}

// client is one connection. It implements only the needed part of HTTP/1.1, which leaves the
// processor to the measured programs.
type client struct {
	conn net.Conn
	in   *bufio.Reader
	body []byte
}

func (c *client) ask(request []byte, want int) error {
	status, body, err := c.talk(request)
	if err == nil && status != want {
		err = fmt.Errorf("status %d, not %d: %s", status, want, body)
	}
	return err
}

// talk returns an answer, whose body is valid until the next one.
func (c *client) talk(request []byte) (status int, body []byte, err error) {
	if _, err := c.conn.Write(request); err != nil {
		return 0, nil, err
	}
	status, length, err := c.head()
	if err != nil {
		return 0, nil, err
	}
	c.body = slices.Grow(c.body[:0], length)[:length]
	_, err = io.ReadFull(c.in, c.body)
	return status, c.body, err
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
func post(target, token string) []byte { return postAs("", target, token) }

// postAs writes a request with more headers, each with its line end.
func postAs(headers, target, token string) []byte {
	return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: sale\r\nAuthorization: Bearer %s\r\n%s"+
		"Content-Length: 0\r\n\r\n", target, token, headers)
}

func get(target, token string) []byte {
	if token != "" {
		token = "Authorization: Bearer " + token + "\r\n"
	}
	return []byte("GET " + target + " HTTP/1.1\r\nHost: sale\r\n" + token + "\r\n")
}
