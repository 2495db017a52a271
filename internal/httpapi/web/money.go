package web

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/text/currency"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// Money is how amounts of a currency are written.
type Money struct {
	Symbol string
	Digits int // after the point: two for most, none for yen
}

// moneyOf knows the symbol and the digits of a currency by its ISO 4217 code.
func moneyOf(code string) (Money, error) {
	unit, err := currency.ParseISO(code)
	if err != nil {
		return Money{}, fmt.Errorf("currency %q: %w", code, err)
	}
	digits, _ := currency.Standard.Rounding(unit)
	return Money{Symbol: message.NewPrinter(language.English).Sprint(currency.NarrowSymbol(unit)), Digits: digits}, nil
}

// Format writes an amount of the smallest unit: 199900 is ¥1,999.00. static/words.js does the same.
func (m Money) Format(amount int64) string {
	text := fmt.Sprintf("%0*d", m.Digits+1, amount)
	whole, part := text[:len(text)-m.Digits], text[len(text)-m.Digits:]
	if part != "" {
		part = "." + part
	}
	return m.Symbol + groupDigits(whole) + part
}

// groupDigits parts digits by thousands.
func groupDigits(digits string) string {
	var out strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			out.WriteByte(',')
		}
		out.WriteRune(d)
	}
	return out.String()
}

// Count writes a number of things.
func (p Page) Count(n int64) string { return groupDigits(strconv.FormatInt(n, 10)) }
