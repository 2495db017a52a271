package netfault

import (
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

func TestRenaming_ReplacesNamesAcrossReads(t *testing.T) {
	var names atomic.Pointer[renaming]
	names.Store(&renaming{from: []byte("127.0.0.1"), to: []byte("127.0.0.2")})
	const text = "-MOVED 5 127.0.0.1:12000\r\n*2\r\n$9\r\n127.0.0.1\r\n:12127.0.0.1\r\n127.0.0.3 127.0.0."
	want := strings.ReplaceAll(text, "127.0.0.1", "127.0.0.2")
	for name, pieces := range map[string]func(io.Reader) io.Reader{
		"whole":        func(r io.Reader) io.Reader { return r },
		"halves":       iotest.HalfReader,
		"byte by byte": iotest.OneByteReader,
		"with the end": iotest.DataErrReader,
	} {
		t.Run(name, func(t *testing.T) {
			got, err := io.ReadAll(&renamed{Reader: pieces(strings.NewReader(text)), names: &names})
			require.NoError(t, err)
			require.Equal(t, want, string(got))
		})
	}
}

func TestRenaming_DeliversWholeLinesAtOnce(t *testing.T) {
	var names atomic.Pointer[renaming]
	names.Store(&renaming{from: []byte("127.0.0.1"), to: []byte("127.0.0.2")})
	r := &renamed{
		Reader: iotest.OneByteReader(strings.NewReader("127.0.0.1\n1")), names: &names,
	}
	line := make([]byte, 0, 16)
	for len(line) < len("127.0.0.1\n") { // Read returns a line before the next bytes arrive
		n, err := r.Read(line[len(line):cap(line)])
		require.NoError(t, err)
		line = line[:len(line)+n]
	}
	require.Equal(t, "127.0.0.2\n", string(line))
}
