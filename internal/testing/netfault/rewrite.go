package netfault

import (
	"bytes"
	"io"
)

// renaming replaces one name with another of the same length. The zero value replaces no name.
type renaming struct{ from, to []byte }

func (r renaming) reader(of io.Reader) io.Reader {
	if len(r.from) == 0 {
		return of
	}
	return &renamed{Reader: of, names: r}
}

// renamed is a stream with a replaced name. Two reads may split a name, so Read keeps back the end
// of a read that may start a name. Read never delays a complete answer of Redis, because each
// answer ends with a newline.
type renamed struct {
	io.Reader
	names renaming
	held  []byte
}

func (r *renamed) Read(p []byte) (int, error) {
	held := copy(p, r.held)
	n, err := r.Reader.Read(p[held:])
	all := p[:held+n]
	copy(all, bytes.ReplaceAll(all, r.names.from, r.names.to))
	keep := 0
	if err == nil {
		keep = begun(all, r.names.from)
	}
	r.held = bytes.Clone(all[len(all)-keep:])
	return len(all) - keep, err
}

// begun returns the number of bytes at the end of a piece that may start a name.
func begun(piece, name []byte) int {
	for n := min(len(piece), len(name)-1); n > 0; n-- {
		if bytes.HasSuffix(piece, name[:n]) {
			return n
		}
	}
	return 0
}
