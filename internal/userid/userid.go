// Package userid checks and encodes the ids of users: buyers, merchants and operators. An identity
// provider chooses them, so an id is an opaque text. The package imports nothing of the project.
package userid

import (
	"encoding/binary"
	"strconv"
	"strings"
)

// MaxLen is the longest id, in characters.
const MaxLen = 64

// Valid reports whether an id is 1 to MaxLen printable ASCII characters without spaces.
func Valid(id string) bool {
	outside := func(r rune) bool { return r < '!' || r > '~' }
	return id != "" && len(id) <= MaxLen && !strings.ContainsFunc(id, outside)
}

// Number returns the number that an id is in decimal, without leading zeros. Earlier releases had
// such numbers of 63 bits for ids.
func Number(id string) (n uint64, is bool) {
	n, err := strconv.ParseUint(id, 10, 63)
	return n, err == nil && strconv.FormatUint(n, 10) == id
}

// AppendSigned appends an id in the form that signatures and seals contain. Earlier releases signed
// the 8 bytes of a number. Such an id keeps that form, so that what they signed stays valid. Every
// other id follows a byte of 255, with which no positive number begins.
func AppendSigned(b []byte, id string) []byte {
	if n, is := Number(id); is {
		return binary.BigEndian.AppendUint64(b, n)
	}
	return append(append(b, 0xff), id...)
}
