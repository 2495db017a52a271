package reservation

import (
	"crypto/md5"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

// PathTTL is how long a random path is valid.
const PathTTL = 60 * time.Second

// CheckPath returns an error unless a string is 32 lower-case hex digits.
func CheckPath(path string) error {
	if len(path) != 2*md5.Size {
		return fmt.Errorf("a path has %d digits, not %d", 2*md5.Size, len(path))
	}
	for _, c := range []byte(path) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return errors.New("a path has lower-case hex digits only")
		}
	}
	return nil
}

// NewPath returns the MD5 of goods, buyer and 128 random bits. The random bits make it impossible
// to guess.
func NewPath(goodsID, buyerID int64) string {
	var b [32]byte
	binary.BigEndian.PutUint64(b[0:], uint64(goodsID))
	binary.BigEndian.PutUint64(b[8:], uint64(buyerID))
	_, _ = rand.Read(b[16:]) // never fails: crypto/rand ends the program instead
	sum := md5.Sum(b[:])
	return hex.EncodeToString(sum[:])
}

// PathGrant is one random path and its buyer.
type PathGrant struct {
	Path    string // 32 lower-case hex digits
	BuyerID int64
}
