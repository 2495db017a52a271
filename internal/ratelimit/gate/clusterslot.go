package gate

import "strings"

// Redis Cluster keeps keys in 16384 hash slots, by the CRC16 (XMODEM) of a key's
// hash tag. Source: the Redis Cluster specification, "Key distribution model",
// https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/.
const (
	slots   = 16384
	crcPoly = 0x1021
)

// stripes are ranges of adjacent slots that share a circuit breaker. A master keeps ranges of
// slots, so a failed one opens no breakers of other masters.
const stripes = 256

// slotOf returns the hash slot of a key.
func slotOf(key string) int {
	crc := uint16(0)
	for _, b := range []byte(hashTag(key)) {
		crc ^= uint16(b) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ crcPoly
			} else {
				crc <<= 1
			}
		}
	}
	return int(crc) % slots
}

// hashTag is the part of a key that determines its slot: the text in its first braces, or the whole
// key.
func hashTag(key string) string {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			return tag
		}
	}
	return key
}

// breakers are one for a single Redis, and one for each stripe of a cluster.
type breakers []breaker

func newBreakers(cluster bool) breakers {
	if cluster {
		return make(breakers, stripes)
	}
	return make(breakers, 1)
}

// of returns the circuit breaker for a key.
func (b breakers) of(key string) *breaker {
	if len(b) == 1 {
		return &b[0]
	}
	return &b[slotOf(key)*stripes/slots]
}
