package stripepay

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"flashsale.dev/seckill/internal/seckill"
)

// unit converts between this service's amounts and Stripe's. Both count a currency's smallest unit,
// so scale is 1 for most currencies, zero-decimal ones such as JPY included. Some currencies have a
// unit at Stripe that the pages do not show, such as ISK: scale is 100 there.
type unit struct {
	code  string // ISO 4217, lower case as Stripe writes it
	scale int64
	step  int64 // Stripe takes multiples of it only, in its unit
}

// zeroDecimal are the currencies whose amounts Stripe takes in whole units
// (https://docs.stripe.com/currencies#zero-decimal). Stripe takes ISK and UGX with two decimals.
var zeroDecimal = []string{
	"BIF", "CLP", "DJF", "GNF", "JPY", "KMF", "KRW", "MGA", "PYG", "RWF", "VND", "VUV", "XAF",
	"XOF", "XPF",
}

// threeDecimal are the currencies whose amounts Stripe takes in thousandths. It refuses amounts
// that are not a multiple of ten.
var threeDecimal = []string{"BHD", "JOD", "KWD", "OMR", "TND"}

// unitOf returns the unit of a currency. Its digits here are those of the pages' prices.
func unitOf(code string) (unit, error) {
	upper := strings.ToUpper(code)
	if !seckill.IsCurrency(upper) {
		return unit{}, fmt.Errorf("currency %q is not of ISO 4217", code)
	}
	ours := seckill.CurrencyDigits(code)
	theirs, step := 2, int64(1)
	switch {
	case slices.Contains(zeroDecimal, upper):
		theirs = 0
	case slices.Contains(threeDecimal, upper):
		theirs, step = 3, 10
	}
	if theirs < ours {
		return unit{}, fmt.Errorf("currency %s: Stripe takes no amounts with %d decimals", code,
			ours)
	}
	scale := int64(math.Pow10(theirs - ours))
	return unit{code: strings.ToLower(code), scale: scale, step: step}, nil
}

// from converts an amount of Stripe. Money that is not in this unit keeps Stripe's amount and names
// its currency, so that no order keeps it.
func (u unit) from(amount int64, code string) (ours int64, foreign string) {
	if code != u.code || amount%u.scale != 0 {
		return amount, strings.ToUpper(code)
	}
	return amount / u.scale, ""
}
