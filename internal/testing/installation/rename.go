package installation

import (
	"bytes"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// newNodesProxy opens a wire to all nodes of a Redis Cluster on 127.0.0.1: each is reached at its own port of another loopback address,
// host. The nodes name each other to whoever asks, and so lead around every wire: in what they answer here their address reads
// as host, as a router that translates addresses would have it.
func newNodesProxy(t testing.TB, host string, nodes ...string) *Proxy {
	t.Helper()
	doors := make([]*door, 0, len(nodes))
	for _, node := range nodes {
		own, port, err := net.SplitHostPort(node)
		require.NoError(t, err)
		require.Len(t, host, len(own), "Redis' protocol counts the bytes of a name")
		d := newDoor(t, net.JoinHostPort(host, port), node)
		d.names = renaming{from: []byte(own), to: []byte(host)}
		doors = append(doors, d)
	}
	return newProxy(t, doors...)
}

// renaming writes one name over another that is as long; the zero value leaves all as it is.
type renaming struct{ from, to []byte }

func (r renaming) reader(of io.ReadCloser) io.ReadCloser {
	if len(r.from) == 0 {
		return of
	}
	return &renamed{ReadCloser: of, names: r}
}

// renamed is a stream with a name written over. It comes in pieces, and a name may lie across two of them: the end of a piece that
// may be the beginning of one waits for the next. (No answer of Redis' ends so: each ends a line.)
type renamed struct {
	io.ReadCloser
	names renaming
	held  []byte
}

func (r *renamed) Read(p []byte) (int, error) {
	held := copy(p, r.held)
	n, err := r.ReadCloser.Read(p[held:])
	all := p[:held+n]
	copy(all, bytes.ReplaceAll(all, r.names.from, r.names.to))
	keep := 0
	if err == nil {
		keep = begun(all, r.names.from)
	}
	r.held = bytes.Clone(all[len(all)-keep:])
	return len(all) - keep, err
}

// begun is how many bytes at the end of a piece may be the beginning of a name.
func begun(piece, name []byte) int {
	for n := min(len(piece), len(name)-1); n > 0; n-- {
		if bytes.HasSuffix(piece, name[:n]) {
			return n
		}
	}
	return 0
}
