package web

import (
	"fmt"
	"math"

	"golang.org/x/text/currency"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"flashsale.dev/seckill/internal/seckill"
)

// Money is the format of a currency's amounts.
type Money struct {
	Symbol string
	Digits int // after the decimal point: 2 for most currencies, 0 for yen
}

// moneyOf returns the format of a currency by its ISO 4217 code. The code is the symbol where
// x/text has none.
func moneyOf(code string) (Money, error) {
	symbol := code
	unit, err := currency.ParseISO(code)
	switch {
	case err == nil:
		symbol = english().Sprint(currency.NarrowSymbol(unit))
	case !seckill.IsCurrency(code):
		return Money{}, fmt.Errorf("currency %q: %w", code, err)
	}
	return Money{Symbol: symbol, Digits: seckill.CurrencyDigits(code)}, nil
}

// unusualDigits returns the digits of the currencies that do not have 2, for scripts. Browsers have
// tables of their own, which disagree: some show HUF without digits.
func unusualDigits() map[string]int {
	digits := make(map[string]int)
	for all := currency.Query(currency.NonTender, currency.Historical); all.Next(); {
		code := all.Unit().String()
		if n := seckill.CurrencyDigits(code); n != 2 {
			digits[code] = n
		}
	}
	return digits
}

// Format formats an amount of the smallest unit: 199900 is ¥1,999.00. static/words.js must agree.
func (m Money) Format(amount int64) string {
	unit := int64(math.Pow10(m.Digits))
	text := m.Symbol + english().Sprint(amount/unit)
	if m.Digits > 0 {
		text += fmt.Sprintf(".%0*d", m.Digits, amount%unit)
	}
	return text
}

// english formats numbers with separators. Both languages of the pages write them so.
func english() *message.Printer { return message.NewPrinter(language.English) }

// Count formats a number with separators.
func (p Page) Count(n int64) string { return english().Sprint(n) }
