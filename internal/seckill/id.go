package seckill

import (
	"crypto/rand"
	"encoding/binary"
	"math/bits"
	"time"
)

const (
	// idEpoch is where the time in a goods id counts from: 2025-01-01T00:00:00Z, in Unix milliseconds.
	idEpoch = 1_735_689_600_000
	// splitSince is the moment from which on an id's low bits are laid out as below: 2026-11-21T00:00:00Z, likewise.
	// Ids of before are random there, and none of them is split.
	splitSince = 1_795_219_200_000

	idRandom   = 22 // bits below the time
	splitFlag  = 1 << 21
	splitShift = 18 // of three bits that say into how many buckets, as the power of two
	// indexShift is of six bits that say which bucket; the sale's own id is its bucket 0. They are not the lowest: ids that
	// differ in their last decimal digit alone lie in neighbouring slots of a Redis Cluster, since CRC16 is linear.
	indexShift = 12
	bucketBits = 6
	indexMask  = (MaxBuckets - 1) << indexShift

	// MaxBuckets is into how many buckets a sale's stock may be split.
	MaxBuckets = 1 << bucketBits
	// splitDraws is how many ids are drawn for a split sale, of which the one is kept whose buckets lie most evenly.
	splitDraws = 256
)

// NewGoodsID makes the id of a sale at a moment (good until 2094), whose stock is in so many buckets: 1, 2, 4, … MaxBuckets.
//
// It is 41 bits of milliseconds since 2025 and 22 bits more, so that any process makes one without asking another, and no
// table needs AUTO_INCREMENT. Of a sale that is not split these are a 0 and 21 random bits: two are alike once in two million
// pairs of the same millisecond; the database's primary key has the last word. Of a split one they are a 1, three bits of
// log2(buckets), 6 zeros, in which its other buckets have their index, and 12 random ones: so that whoever has an id, or an
// order number, knows the sale, its buckets, and the bucket of a buyer, and asks nobody.
func NewGoodsID(now time.Time, buckets int) int64 {
	ms := now.UnixMilli()
	if buckets <= 1 {
		low := randomBits()
		if ms >= splitSince {
			low &^= splitFlag
		}
		return (ms-idEpoch)<<idRandom | low
	}
	base := (max(ms, splitSince)-idEpoch)<<idRandom | splitFlag | int64(bits.Len(uint(buckets))-1)<<splitShift
	best, least := int64(0), 0.0
	for range splitDraws {
		id := base | randomBits()&(1<<indexShift-1)
		if load := unevenness(BucketsOf(id)); best == 0 || load < least {
			best, least = id, load
		}
	}
	return best
}

func randomBits() int64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the program rather than return an error
	return int64(binary.BigEndian.Uint64(b[:]) & (1<<idRandom - 1))
}

// Buckets tells into how many buckets the stock of a goods is split; 1 where it is not.
func Buckets(goodsID int64) int {
	if goodsID>>idRandom < splitSince-idEpoch || goodsID&splitFlag == 0 {
		return 1
	}
	power := goodsID >> splitShift & 7
	if power < 1 || power > bucketBits {
		return 1 // nobody makes such an id
	}
	return 1 << power
}

// SaleOf gives the sale's id of any of its buckets; its own, where it is not split.
func SaleOf(bucketID int64) int64 {
	if Buckets(bucketID) == 1 {
		return bucketID
	}
	return bucketID &^ indexMask
}

// IsBucket tells whether an id is of a bucket that is no sale: nobody outside knows it.
func IsBucket(goodsID int64) bool { return SaleOf(goodsID) != goodsID }

// Index tells which of its sale's buckets a goods is: its place in BucketsOf.
func Index(goodsID int64) int {
	if Buckets(goodsID) == 1 {
		return 0
	}
	return int(goodsID & indexMask >> indexShift)
}

// Shares splits units evenly over so many buckets, the odd ones to the first.
func Shares(units int64, buckets int) []int64 {
	shares := make([]int64, buckets)
	for i := range shares {
		shares[i] = units / int64(buckets)
		if int64(i) < units%int64(buckets) {
			shares[i]++
		}
	}
	return shares
}

// BucketsOf lists the goods ids of a sale's buckets, its own first and ascending; of any of its buckets the same.
func BucketsOf(goodsID int64) []int64 {
	ids := make([]int64, Buckets(goodsID))
	for i := range ids {
		ids[i] = SaleOf(goodsID) | int64(i)<<indexShift
	}
	return ids
}

// BucketOf gives the goods id of the bucket from which a buyer buys: always the same, so that a buyer's limit is kept in one
// place. Sale and buyer are mixed, so that runs of ids spread over the buckets, and in every sale otherwise.
func BucketOf(goodsID, buyerID int64) int64 {
	n := uint64(Buckets(goodsID))
	if n == 1 {
		return goodsID
	}
	sale := SaleOf(goodsID)
	return sale | int64(mixed(mixed(uint64(sale))^uint64(buyerID))&(n-1))<<indexShift
}

// mixed is the finalizer of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014): each bit
// of the input changes half of the output's.
func mixed(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
