package ratelimit

import (
	"math/big"
	"slices"
)

// A rate is rounded by one of so many at most.
const precision = 1_000_000_000

// rounded lists the fractions that may stand for x, the closest first: x itself and its
// convergents, the closest fractions that are as short. None differs from x by more than a
// billionth of x, and none has a number above MaxTicks. 1000/3 as a decimal of 16 digits becomes
// 3000 µs again. The list is empty if x is too large.
func rounded(x *big.Rat) (near []*big.Rat) {
	most := new(big.Rat).Quo(x, big.NewRat(precision, 1))
	add := func(y *big.Rat) {
		off := new(big.Rat).Sub(y, x)
		fits := y.Num().IsInt64() && y.Denom().IsInt64() &&
			y.Num().Int64() <= MaxTicks && y.Denom().Int64() <= MaxTicks
		if fits && off.Abs(off).Cmp(most) <= 0 {
			near = append(near, y)
		}
	}
	// The convergents of a continued fraction, by Euclid's algorithm. The last one is x.
	num, den := new(big.Int).Set(x.Num()), new(big.Int).Set(x.Denom())
	p0, q0, p, q := big.NewInt(0), big.NewInt(1), big.NewInt(1), big.NewInt(0)
	for den.Sign() > 0 {
		whole, rest := new(big.Int).QuoRem(num, den, new(big.Int))
		p0, p = p, new(big.Int).Add(new(big.Int).Mul(whole, p), p0)
		q0, q = q, new(big.Int).Add(new(big.Int).Mul(whole, q), q0)
		if p.Sign() > 0 {
			add(new(big.Rat).SetFrac(p, q))
		}
		num, den = den, rest
	}
	slices.Reverse(near)
	return near
}
