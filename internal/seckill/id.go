package seckill

import (
	"crypto/rand"
	"encoding/binary"
	"time"
)

const (
	// idEpoch is the zero of the time in a goods id: 2025-01-01T00:00:00Z, in Unix milliseconds.
	idEpoch = 1_735_689_600_000
	// idRandom is the number of bits below the time.
	idRandom = 22
	// reservedBit is 0 in every new id. Ids with a 1 belong to sales whose stock earlier releases split.
	reservedBit = 1 << 21
)

// newGoodsID makes the id of a sale at a moment (good until 2094).
//
// It is 41 bits of milliseconds since 2025, a 0 and 21 random bits. Any process makes one without asking another, and no
// table needs AUTO_INCREMENT. Two ids of the same millisecond are equal once in two million pairs; the database's primary
// key then refuses the second.
func newGoodsID(now time.Time) int64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the program rather than return an error
	return (now.UnixMilli()-idEpoch)<<idRandom | int64(binary.BigEndian.Uint64(b[:])&(reservedBit-1))
}
