package seckill

import (
	"crypto/rand"
	"encoding/binary"
	"time"
)

// idEpoch is where the time in a goods id counts from: 2025-01-01T00:00:00Z, in Unix milliseconds.
const idEpoch = 1_735_689_600_000

// NewGoodsID makes a goods id at a moment (good until 2094): 41 bits of milliseconds since 2025 and 22 random bits, so that any
// process makes them without asking another, and no table needs AUTO_INCREMENT. Two are alike once in four million
// pairs of the same millisecond; the database's primary key has the last word.
func NewGoodsID(now time.Time) int64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the program rather than return an error
	low := binary.BigEndian.Uint64(b[:]) & (1<<22 - 1)
	return (now.UnixMilli()-idEpoch)<<22 | int64(low)
}
