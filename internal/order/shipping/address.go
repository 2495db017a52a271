package shipping

import (
	"encoding/json"
	"net/mail"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/language"

	"flashsale.dev/seckill/internal/apierror"
)

// Address is where an order goes. Text is UTF-8 without control characters.
type Address struct {
	Name       string `json:"name"`                 // of who receives it: 1 to 100 characters
	Phone      string `json:"phone,omitempty"`      // 3 to 32 of digits, + - ( ) and spaces
	Email      string `json:"email,omitempty"`      // at most 254 characters
	Line1      string `json:"line1"`                // 1 to 200 characters
	Line2      string `json:"line2,omitempty"`      // at most 200 characters
	City       string `json:"city"`                 // 1 to 100 characters
	PostalCode string `json:"postalCode,omitempty"` // at most 20 characters; some countries have none
	Country    string `json:"country"`              // ISO 3166-1 alpha-2, such as DE
	Note       string `json:"note,omitempty"`       // for who delivers it: at most 500 characters
}

var phoneNumber = regexp.MustCompile(`^[0-9+() -]{3,32}$`)

// Validate returns the fields that are out of their bounds, as an apierror.Error; nil if there are
// none.
func (a Address) Validate() error {
	var p apierror.Problems
	checkText(&p, "name", a.Name, 1, 100)
	checkText(&p, "line1", a.Line1, 1, 200)
	checkText(&p, "line2", a.Line2, 0, 200)
	checkText(&p, "city", a.City, 1, 100)
	checkText(&p, "postalCode", a.PostalCode, 0, 20)
	checkText(&p, "note", a.Note, 0, 500)
	p.Check(a.Phone != "" && !phoneNumber.MatchString(a.Phone),
		"phone", "must have 3 to 32 digits, spaces and + - ( )")
	p.Check(a.Email != "" && !isEmail(a.Email), "email", "must be an address of a mailbox")
	p.Check(!isCountry(a.Country), "country", "must be a country code of ISO 3166, such as DE")
	return p.Err()
}

func checkText(p *apierror.Problems, field, text string, least, most int) {
	n := utf8.RuneCountInString(text)
	p.Check(n < least || n > most, field, "must have %d to %d characters", least, most)
	p.Check(strings.ContainsFunc(text, unicode.IsControl),
		field, "must not contain control characters")
	p.Check(least > 0 && n > 0 && strings.TrimSpace(text) == "", field, "must not be blank")
}

// isEmail excludes what net/mail accepts beyond a bare mailbox, such as a name before it.
func isEmail(text string) bool {
	a, err := mail.ParseAddress(text)
	return err == nil && a.Address == text && len(text) <= 254
}

// isCountry excludes codes that are not assigned any more, or only reserved, such as UK. The
// reserved ones that the library takes for countries have no number of the United Nations.
func isCountry(code string) bool {
	region, err := language.ParseRegion(code)
	return err == nil && region.IsCountry() && region.Canonicalize().String() == code &&
		region.M49() != 0 && !slices.Contains([]string{"AN", "CS", "NT", "SU", "YU"}, code)
}

// Countries returns the codes of all countries that an address may have, in alphabetical order.
func Countries() (all []string) {
	for a := 'A'; a <= 'Z'; a++ {
		for b := 'A'; b <= 'Z'; b++ {
			if code := string([]rune{a, b}); isCountry(code) {
				all = append(all, code)
			}
		}
	}
	return all
}

// text is the form that is encrypted.
func (a Address) text() string {
	text, err := json.Marshal(a)
	if err != nil {
		panic(err) // a struct of strings has a JSON form
	}
	return string(text)
}
