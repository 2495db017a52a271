package web

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/text/currency"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// Money is the format of a currency's amounts.
type Money struct {
	Symbol string
	Digits int // after the decimal point: 2 for most currencies, 0 for yen
}

// moneyOf returns the format of a currency by its ISO 4217 code.
func moneyOf(code string) (Money, error) {
	unit, err := currency.ParseISO(code)
	if err != nil {
		return Money{}, fmt.Errorf("currency %q: %w", code, err)
	}
	digits, _ := currency.Standard.Rounding(unit)
	return Money{Symbol: message.NewPrinter(language.English).Sprint(currency.NarrowSymbol(unit)), Digits: digits}, nil
}

// Format formats an amount of the smallest unit: 199900 is ¥1,999.00. static/words.js must agree.
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

// Count formats a number with separators.
func (p Page) Count(n int64) string { return groupDigits(strconv.FormatInt(n, 10)) }
