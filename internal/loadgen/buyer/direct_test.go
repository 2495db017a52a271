package buyer

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// counted is a server that counts its connections.
func counted(t *testing.T, h http.HandlerFunc) (url string, connections *atomic.Int64) {
	t.Helper()
	connections = &atomic.Int64{}
	s := httptest.NewUnstartedServer(h)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	return s.URL, connections
}

func direct(t *testing.T, o DirectOptions) *Direct {
	t.Helper()
	d := NewDirect(o)
	t.Cleanup(d.CloseIdleConnections)
	return d
}

func get(d *Direct, url string) (string, error) {
	resp, err := d.Client().Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

func TestDirectReadsEveryKindOfAnswer(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	for name, h := range map[string]http.HandlerFunc{
		"of a stated length": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "short") },
		"in chunks": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, long[:50_000])
			w.(http.Flusher).Flush()
			_, _ = io.WriteString(w, long[50_000:])
		},
		"with no body":          func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
		"and then hung up upon": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Connection", "close") },
	} {
		t.Run(name, func(t *testing.T) {
			url, _ := counted(t, h)
			d := direct(t, DirectOptions{Conns: 1})
			want := map[string]string{"of a stated length": "short", "in chunks": long}[name]
			for range 3 {
				got, err := get(d, url)
				require.NoError(t, err)
				require.Equal(t, want, got)
			}
		})
	}
}

func TestDirectSharesFewConnections(t *testing.T) {
	url, connections := counted(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Header.Get("N")) })
	d := direct(t, DirectOptions{Conns: 3})
	var g errgroup.Group
	for range 20 {
		g.Go(func() error {
			for range 20 {
				if _, err := get(d, url); err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())
	require.LessOrEqual(t, connections.Load(), int64(3))
}

func TestDirectNeverSendsTwice(t *testing.T) {
	var asked atomic.Int64
	url, _ := counted(t, func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) > 1 {
			panic(http.ErrAbortHandler) // the connection breaks, on one that was used before
		}
	})
	d := direct(t, DirectOptions{Conns: 1})
	_, err := get(d, url)
	require.NoError(t, err)
	_, err = get(d, url)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.EqualValues(t, 2, asked.Load())
}

func TestDirectGivesUpInTime(t *testing.T) {
	release := make(chan struct{})
	url, _ := counted(t, func(http.ResponseWriter, *http.Request) { <-release })
	defer close(release)
	d := direct(t, DirectOptions{Conns: 1, Timeout: 50 * time.Millisecond})
	var g errgroup.Group
	for range 2 { // one waits for the answer, the other for the connection
		g.Go(func() error {
			_, err := get(d, url)
			if !TimedOut(err) {
				return errors.Join(errors.New("no timeout"), err)
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())
}

func TestAbortEndsCallsAndThoseToCome(t *testing.T) {
	asked, release := make(chan struct{}), make(chan struct{})
	url, _ := counted(t, func(http.ResponseWriter, *http.Request) { close(asked); <-release })
	defer close(release)
	d := direct(t, DirectOptions{Conns: 2})
	ended := make(chan error, 1)
	go func() {
		_, err := get(d, url)
		ended <- err
	}()
	<-asked
	d.Abort()
	require.Error(t, <-ended)
	_, err := get(d, url)
	require.ErrorIs(t, err, errAborted)
}

// No name and no address may lead a load to somebody else's machine: the address itself is looked at, before anything is sent.
func TestDirectStaysOnThisMachine(t *testing.T) {
	for _, address := range []string{"192.0.2.1:80", "10.0.0.1:8080", "[2001:db8::1]:80", "0.0.0.0:80", "nonsense"} {
		require.Error(t, loopbackOnly("tcp", address, nil), address)
	}
	require.ErrorIs(t, loopbackOnly("tcp", "192.0.2.1:80", nil), ErrRemote)
	for _, address := range []string{"127.0.0.1:80", "127.9.9.9:80", "[::1]:80"} {
		require.NoError(t, loopbackOnly("tcp", address, nil), address)
	}
	d := direct(t, DirectOptions{Conns: 1, Timeout: time.Second})
	require.NotNil(t, d.dialer.Control, "nothing looks at the addresses")
	require.Nil(t, NewDirect(DirectOptions{AllowRemote: true}).dialer.Control)
	_, err := d.take(context.Background(), "192.0.2.1:80", time.Now().Add(time.Second)) // reserved for documentation; refused before it is dialled
	require.ErrorIs(t, err, ErrRemote)
}
