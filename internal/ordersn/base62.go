package ordersn

import "encoding/binary"

const (
	numberBytes = 2 + pathLen/2 + 8 // 62^35 is a little more than 2^208
	// digits are in the order of their bytes, so that numbers sort as their texts do.
	digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	// groupLen digits are computed at a time: 62^5 fits into one limb.
	groupLen, group = 5, 62 * 62 * 62 * 62 * 62
)

// limbs is a number of numberBytes bytes, most significant limb first. The first limb is half used.
type limbs [(numberBytes + 3) / 4]uint32

// encode62 returns the Len digits of a number. It avoids package big, which is slower.
func encode62(b [numberBytes]byte) string {
	var n limbs
	n[0] = uint32(binary.BigEndian.Uint16(b[:]))
	for i := 1; i < len(n); i++ {
		n[i] = binary.BigEndian.Uint32(b[4*i-2:])
	}
	var text [Len]byte
	for end := Len; end > 0; end -= groupLen {
		rest := uint64(0)
		for i := range n {
			rest = rest<<32 | uint64(n[i])
			n[i] = uint32(rest / group)
			rest %= group
		}
		for i := end - 1; i >= end-groupLen; i-- {
			text[i] = digits[rest%62]
			rest /= 62
		}
	}
	return string(text[:])
}

// decode62 returns the number of Len digits; false if the text is none or the number is too large.
func decode62(text string) (b [numberBytes]byte, ok bool) {
	if len(text) != Len {
		return b, false
	}
	var n limbs
	for at := 0; at < Len; at += groupLen {
		sum := uint64(0)
		for _, c := range []byte(text[at : at+groupLen]) {
			digit, ok := valueOf(c)
			if !ok {
				return b, false
			}
			sum = sum*62 + digit
		}
		for i := len(n) - 1; i >= 0; i-- {
			sum += uint64(n[i]) * group
			n[i] = uint32(sum)
			sum >>= 32
		}
		if sum > 0 {
			return b, false
		}
	}
	binary.BigEndian.PutUint16(b[:], uint16(n[0]))
	for i := 1; i < len(n); i++ {
		binary.BigEndian.PutUint32(b[4*i-2:], n[i])
	}
	return b, n[0] < 1<<16
}

// valueOf returns the value of a digit.
func valueOf(c byte) (uint64, bool) {
	switch {
	case '0' <= c && c <= '9':
		return uint64(c - '0'), true
	case 'A' <= c && c <= 'Z':
		return uint64(c-'A') + 10, true
	case 'a' <= c && c <= 'z':
		return uint64(c-'a') + 36, true
	}
	return 0, false
}
