package report

import (
	"math"
	"strconv"
)

// scale maps values to SVG coordinates.
type scale struct {
	from, to  float64 // values
	low, high float64 // coordinates
	log       bool
}

// at is the coordinate of a value.
func (s scale) at(v float64) float64 {
	part := (v - s.from) / (s.to - s.from)
	if s.log {
		part = math.Log(max(v, s.from)/s.from) / math.Log(s.to/s.from)
	}
	return s.low + part*(s.high-s.low)
}

// ticks are round values: powers of ten, or about five steps of 1, 2 or 5 times a power of ten.
func (s scale) ticks() []float64 {
	var list []float64
	if s.log {
		for v := s.from; v <= s.to*1.001; v *= 10 {
			list = append(list, v)
		}
		return list
	}
	step := math.Pow(10, math.Floor(math.Log10(s.to/5)))
	for _, by := range []float64{1, 2, 5, 10} {
		if s.to/(step*by) <= 6 {
			step *= by
			break
		}
	}
	for i := 0; float64(i)*step <= s.to*1.001; i++ {
		list = append(list, float64(i)*step)
	}
	return list
}

// number formats a value briefly.
func number(v float64) string {
	if v >= 100 {
		return strconv.FormatFloat(math.Round(v), 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
