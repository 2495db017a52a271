package seckill

import "strconv"

// slots is how many hash slots a Redis Cluster has, and mostMasters up to how many masters the buckets of a sale are laid
// out for: with more, chance alone spreads them.
const (
	slots       = 16384
	mostMasters = 16
)

// Slot is the hash slot of a goods' keys in a Redis Cluster (its specification: CRC16 of the hash tag, modulo 16384): their
// tag is the decimal id.
func Slot(goodsID int64) int { return int(crc16(strconv.AppendInt(nil, goodsID, 10))) % slots }

// crc16 is CRC-16/XMODEM: polynomial 0x1021, beginning with 0.
func crc16(text []byte) uint16 {
	var crc uint16
	for _, c := range text {
		crc ^= uint16(c) << 8
		for range 8 {
			carry := crc&0x8000 != 0
			if crc <<= 1; carry {
				crc ^= 0x1021
			}
		}
	}
	return crc
}

// unevenness adds up, over clusters of 2, 3, … masters with equal ranges of slots, how much more than its share the busiest
// of them carries of these buckets, squared: one that carries twice its share is worse than two that carry half more.
func unevenness(buckets []int64) float64 {
	at := make([]int, len(buckets))
	for i, id := range buckets {
		at[i] = Slot(id)
	}
	sum := 0.0
	for masters := 2; masters <= min(mostMasters, len(buckets)); masters++ {
		over := float64(busiest(at, masters)*masters)/float64(len(buckets)) - 1
		sum += over * over
	}
	return sum
}

// busiest counts the slots in the fullest of so many equal ranges.
func busiest(at []int, masters int) int {
	var carried [mostMasters]int
	most := 0
	for _, slot := range at {
		i := slot * masters / slots
		carried[i]++
		most = max(most, carried[i])
	}
	return most
}
