package gate

import "strings"

// Redis Cluster keeps keys in 16384 slots, by CRC16 (XMODEM) of a key's hash tag
// (https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/).
const (
	slots   = 16384
	crcPoly = 0x1021
)

// stripes of slots that lie side by side, each with a breaker: masters keep
// ranges of slots, so that what one master's silence breaks is its own.
const stripes = 256

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

// breakers are one for a single Redis, and one for each stripe of a cluster.
type breakers []breaker

func newBreakers(cluster bool) breakers {
	if cluster {
		return make(breakers, stripes)
	}
	return make(breakers, 1)
}

func (b breakers) of(key string) *breaker {
	if len(b) == 1 {
		return &b[0]
	}
	return &b[slotOf(key)*stripes/slots]
}

// hashTag is the part of a key that decides its slot in a cluster.
func hashTag(key string) string {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			return tag
		}
	}
	return key
}
