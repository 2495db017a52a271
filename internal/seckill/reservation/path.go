package reservation

import (
	"errors"
	"fmt"
)

const pathLen = 32

// CheckPath returns an error unless a string is 32 lower-case hex digits.
func CheckPath(path string) error {
	if len(path) != pathLen {
		return fmt.Errorf("a path has %d digits, not %d", pathLen, len(path))
	}
	for _, c := range []byte(path) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return errors.New("a path has lower-case hex digits only")
		}
	}
	return nil
}
