package seckill

import (
	"crypto/rand"
	"encoding/binary"
	"time"

	"github.com/google/uuid"
)

const (
	// idEpoch is 2025-01-01T00:00:00Z in Unix milliseconds, the zero of the time in a goods id.
	idEpoch = 1_735_689_600_000
	// idRandom is the number of bits below the time.
	idRandom = 22
	// reservedBit is 0 in every new id. In ids of the releases that split stocks, a 1 marked a
	// split sale; in older ids the bit is random.
	reservedBit = 1 << 21
)

// newGoodsID returns a new id for a sale created at a moment before the year 2094.
//
// An id has 41 bits of milliseconds since 2025, a 0 and 21 random bits. Every process makes its own
// ids, and no table needs AUTO_INCREMENT. Two ids of the same millisecond collide once in two
// million pairs. The primary key in MySQL then refuses the second.
func newGoodsID(now time.Time) int64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	random := int64(binary.BigEndian.Uint64(b[:]) & (reservedBit - 1))
	return (now.UnixMilli()-idEpoch)<<idRandom | random
}

// NewRowID returns a UUIDv7 for a row that is made at a time of the database's clock. Lists sort by
// such ids, and the clocks of nodes differ. The bits after that time hold this process' own time,
// so that the ids that a process makes for one database time sort too.
func NewRowID(at time.Time) (id uuid.UUID) {
	own := uuid.Must(uuid.NewV7()) // never fails, as above
	head, tail := binary.BigEndian.Uint64(own[:8]), binary.BigEndian.Uint64(own[8:])
	ms, part := head>>16, head&0xfff // part of a millisecond
	// 48 bits of at, the version, 12 bits of ms; the variant, 12 more of ms, 12 of part, 38 random.
	binary.BigEndian.PutUint64(id[:8], uint64(at.UnixMilli())<<16|7<<12|ms>>12&0xfff)
	binary.BigEndian.PutUint64(id[8:], 2<<62|ms&0xfff<<50|part<<38|tail&(1<<38-1))
	return id
}
