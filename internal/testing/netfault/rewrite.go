package netfault

import (
	"bytes"
	"io"
	"sync/atomic"
)

// renaming replaces one name with another of the same length.
type renaming struct{ from, to []byte }

// renamed is a stream with a replaced name; without names it is unchanged. Two reads may split a
// name, so Read keeps back the end of a read that may start a name. Read never delays a complete
// request or answer of Redis, because each ends with a newline.
type renamed struct {
	io.Reader
	names *atomic.Pointer[renaming]
	held  []byte
}

func (r *renamed) Read(p []byte) (int, error) {
	held := copy(p, r.held)
	n, err := r.Reader.Read(p[held:])
	all := p[:held+n]
	names, keep := r.names.Load(), 0
	if names != nil {
		copy(all, bytes.ReplaceAll(all, names.from, names.to))
	}
	if names != nil && err == nil {
		keep = begun(all, names.from)
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
