package waitingroom

import (
	"crypto/sha1"
	"encoding/hex"
)

// Chain returns the digest after a group of joins: redis.sha1hex(prev .. line) of Redis' Lua, 40
// lower-case hex digits. prev is the digest before, "" at first. line must not begin with 40 hex
// digits, because a first line might then equal a second one; one that begins with an int64 and a
// colon does not.
func Chain(prev, line string) string {
	sum := sha1.Sum([]byte(prev + line))
	return hex.EncodeToString(sum[:])
}
