package seckill

import (
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/currency"

	"flashsale.dev/seckill/internal/apierror"
)

// Details is what a merchant says of a sale's goods. No purchase depends on it, so only MySQL has
// it. The zero value says nothing.
type Details struct {
	Description string // text of at most 4,000 characters
	ImageURL    string // an https URL
	ExternalID  string // the merchant's own id, unique among the merchant's sales
	Metadata    string // the merchant's pairs, a JSON object of strings; "" without any
	Currency    string // ISO 4217; "" is the installation's
}

// Bounds of the details, in characters.
const (
	maxDescription = 4000
	maxImageURL    = 1000
	maxExternalID  = 64
	maxPairs       = 20
	maxPairValue   = 500
)

var pairName = regexp.MustCompile(`^[0-9A-Za-z_-]{1,40}$`)

// validate adds the fields that are out of their bounds.
func (d Details) validate(p *apierror.Problems) {
	p.Check(utf8.RuneCountInString(d.Description) > maxDescription,
		"description", "must have at most %d characters", maxDescription)
	p.Check(strings.ContainsFunc(d.Description, isForbiddenInText),
		"description", "must not contain control characters")
	p.Check(d.ImageURL != "" && !isImageURL(d.ImageURL),
		"imageUrl", "must be an https URL of at most %d characters", maxImageURL)
	p.Check(len(d.ExternalID) > maxExternalID || strings.ContainsFunc(d.ExternalID, isNotVisible),
		"externalId", "must be at most %d visible ASCII characters", maxExternalID)
	p.Check(d.Currency != "" && !IsCurrency(d.Currency),
		"currency", "must be the code of a currency in ISO 4217, such as EUR")
	validatePairs(d.Pairs(), p)
}

func isForbiddenInText(c rune) bool { return unicode.IsControl(c) && c != '\n' && c != '\t' }

func isNotVisible(c rune) bool { return c <= ' ' || c > '~' }

func isImageURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && len(text) <= maxImageURL && u.Scheme == "https" && u.Hostname() != "" &&
		u.User == nil
}

// newerCurrencies are currencies of ISO 4217 that x/text does not have. All have two digits.
var newerCurrencies = []string{"MRU", "SLE", "VED", "VES", "XCG", "ZWG"}

// IsCurrency reports whether a code of ISO 4217, in upper case, is of money that is or was legal
// tender. Others are of metals, funds and units of account, or of no currency.
func IsCurrency(code string) bool {
	for all := currency.Query(currency.Historical); all.Next(); {
		if all.Unit().String() == code {
			return true
		}
	}
	return slices.Contains(newerCurrencies, code)
}

// CurrencyDigits returns how many digits a currency has after the decimal point: 2 for most, 0 for
// yen. code is of ISO 4217; an unknown one has 2.
func CurrencyDigits(code string) int {
	unit, err := currency.ParseISO(code)
	if err != nil {
		return 2
	}
	digits, _ := currency.Standard.Rounding(unit)
	return digits
}

func validatePairs(pairs map[string]string, p *apierror.Problems) {
	p.Check(len(pairs) > maxPairs, "metadata", "must have at most %d pairs", maxPairs)
	for name, value := range pairs {
		if !pairName.MatchString(name) {
			p.Add("metadata", "must have names of 1 to 40 letters, digits, _ and -")
			continue
		}
		p.Check(utf8.RuneCountInString(value) > maxPairValue ||
			strings.ContainsFunc(value, unicode.IsControl), "metadata."+name,
			"must have at most %d characters, without control characters", maxPairValue)
	}
}

// Pairs returns the metadata; nil without any.
func (d Details) Pairs() (pairs map[string]string) {
	if d.Metadata != "" {
		_ = json.Unmarshal([]byte(d.Metadata), &pairs) // MetadataOf wrote it
	}
	return pairs
}

// MetadataOf returns pairs in the form of Details. Equal maps have the same form.
func MetadataOf(pairs map[string]string) string {
	if len(pairs) == 0 {
		return ""
	}
	text, err := json.Marshal(pairs)
	if err != nil {
		panic(err) // a map of strings has a JSON form
	}
	return string(text)
}
