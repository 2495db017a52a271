package netfault

import (
	"bufio"
	"io"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo starts a server that returns each byte.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer conn.Close(); _, _ = io.Copy(conn, conn) }()
		}
	}()
	return l.Addr().String()
}

type client struct {
	net.Conn
	t *testing.T
	r *bufio.Reader
}

func dial(t *testing.T, p *Proxy) client {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return client{conn, t, bufio.NewReader(conn)}
}

// ask sends a line and waits for the answer. It returns the error of either.
func (c client) ask(line string, within time.Duration) error {
	c.t.Helper()
	_, _ = io.WriteString(c, line+"\n")
	return c.hear(line, within)
}

func (c client) hear(line string, within time.Duration) error {
	c.t.Helper()
	require.NoError(c.t, c.SetReadDeadline(time.Now().Add(within)))
	got, err := c.r.ReadString('\n')
	if err == nil {
		require.Equal(c.t, line+"\n", got)
	}
	return err
}

const (
	long  = 10 * time.Second
	brief = 50 * time.Millisecond
)

// TestProxy_InjectsEachFaultAndRecovers injects the faults one after the other into one connection.
func TestProxy_InjectsEachFaultAndRecovers(t *testing.T) {
	p := Start(t, echo(t))
	c := dial(t, p)
	require.NoError(t, c.ask("a", long))
	p.Cut()
	require.Error(t, c.ask("b", brief))
	p.Restore()
	require.NoError(t, c.hear("b", long), "a cut holds data until Restore")

	p.Slow(brief)
	began := time.Now()
	require.NoError(t, c.ask("c", long))
	require.GreaterOrEqual(t, time.Since(began), 2*brief, "both directions are delayed")
	p.Slow(0)
	p.Lag(brief)
	began = time.Now()
	require.NoError(t, c.ask("lag", long))
	require.GreaterOrEqual(t, time.Since(began), brief)
	p.Lag(0)

	sprung := make(chan struct{})
	p.SetTrap(&Trap{
		Match:  func(b []byte) bool { return string(b) == "e\n" },
		Sprung: func() { close(sprung) },
	})
	require.NoError(t, c.ask("d", long))
	require.Error(t, c.ask("e", brief))
	<-sprung
	p.Restore()
	require.NoError(t, c.hear("e", long))

	p.Alter("old", "new")
	_, _ = io.WriteString(c, "an old text\n")
	require.NoError(t, c.hear("an new text", long))
	p.Alter("", "")
	require.NoError(t, c.ask("an old text", long))

	p.Block("127.0.0.9")
	require.NoError(t, c.ask("f", long), "Block must not affect another source")
	p.Block("127.0.0.1")
	for _, err := range []error{c.hear("", long), dial(t, p).ask("g", long)} {
		require.Error(t, err)
		require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the connection hangs")
	}
	p.Unblock("127.0.0.1")

	c = dial(t, p)
	require.NoError(t, c.ask("h", long))
	p.Drop()
	require.ErrorIs(t, c.hear("", long), io.EOF)
}

// TestTrap_PassDecidesWhetherTheServerGetsTheRequest checks both kinds of traps, whose clients get
// no answer before Restore. Redirect sends the clients to a server that records.
func TestTrap_PassDecidesWhetherTheServerGetsTheRequest(t *testing.T) {
	for _, pass := range []bool{true, false} {
		p := Start(t, echo(t))
		server, received := recorder(t)
		p.Redirect(server)
		c := dial(t, p)
		p.SetTrap(&Trap{Match: func([]byte) bool { return true }, Pass: pass, Sprung: func() {}})
		require.Error(t, c.ask("a", brief))
		require.Eventually(t, func() bool {
			return received.Load() == pass
		}, long, time.Millisecond)
		p.Restore()
		require.NoError(t, c.hear("a", long))
	}
}

// recorder starts a server that returns each byte, and records whether it has received one.
func recorder(t *testing.T) (addr string, received *atomic.Bool) {
	t.Helper()
	received = &atomic.Bool{}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.Copy(conn, io.TeeReader(conn, writes(func() { received.Store(true) })))
	}()
	return l.Addr().String(), received
}

// writes is called for each write.
type writes func()

func (w writes) Write(p []byte) (int, error) {
	w()
	return len(p), nil
}
