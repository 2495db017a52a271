package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-playground/validator/v10"

	"flashsale.dev/seckill/internal/seckill"
)

// check compares every setting with the rules in its validate tag, except those that did not parse:
// c does not have their values. It does not stop at the first violation, so that an operator
// corrects a deployment once.
func (c *Config) check(settings []Setting, unparsed []string) (problems []error) {
	v := reflect.ValueOf(c).Elem()
	for _, s := range settings {
		if slices.Contains(unparsed, s.Name) {
			continue
		}
		if err := s.Check(v.FieldByIndex(s.index).Interface()); err != nil {
			problems = append(problems, err)
		}
	}
	if !seckill.IsCurrency(c.HTTP.Currency) {
		problems = append(problems, fmt.Errorf(
			"SECKILL_CURRENCY: is %q, must be the ISO 4217 code of a currency", c.HTTP.Currency))
	}
	public, err := url.Parse(c.Payment.PublicURL)
	if err == nil && (public.User != nil || strings.ContainsAny(c.Payment.PublicURL, "?#")) {
		problems = append(problems, errors.New(
			"SECKILL_PUBLIC_URL: must have no user, no query and no fragment"))
	}
	if _, err := c.Auth.Phones(); err != nil {
		problems = append(problems, fmt.Errorf("SECKILL_PHONE_KEYS: %w", err))
	}
	return problems
}

// Check compares a value of the setting's type with the rules in its validate tag; seckillctl has
// such values from its flags. Of a secret an error has the length and never the value.
func (s Setting) Check(value any) error {
	rules := validator.New()
	problems := []error{
		rules.RegisterValidation("addr", isAddr), rules.RegisterValidation("bytes", hasBytes),
		rules.RegisterValidation("ring", isKeyRing),
	}
	// requirement turns a validate tag into words.
	requirement := strings.NewReplacer("omitempty,", "", "dive,", "", "min=", "", ",max=", " to ",
		"oneof=", "one of ", "addr", "host:port", "http_url", "an http:// or https:// URL",
		"ring=32", "a comma list of secrets that are at least 32 bytes long each",
		"bytes=32", "at least 32 bytes long")
	rule := s.field.Tag.Get("validate")
	broken, _ := errors.AsType[validator.ValidationErrors](rules.Var(value, rule))
	for _, b := range broken {
		is := fmt.Sprintf("%q", withoutUser(fmt.Sprint(b.Value())))
		if secret, ok := b.Value().(Secret); ok {
			is = fmt.Sprintf("%d bytes long", len(secret))
		}
		problems = append(problems,
			fmt.Errorf("%s: is %s, must be %s", s.Name, is, requirement.Replace(rule)))
	}
	return errors.Join(problems...)
}

// withoutUser hides what precedes the last @: an address written as a URL may have a password.
func withoutUser(address string) string {
	if at := strings.LastIndex(address, "@"); at >= 0 {
		return "***" + address[at:]
	}
	return address
}

// hasBytes requires a least number of bytes. The validator's own min counts characters.
func hasBytes(f validator.FieldLevel) bool {
	least, err := strconv.Atoi(f.Param())
	return err == nil && f.Field().Len() >= least
}

// isKeyRing requires a comma list of secrets, each of a least number of bytes.
func isKeyRing(f validator.FieldLevel) bool {
	least, err := strconv.Atoi(f.Param())
	ring := Secret(f.Field().String()).Ring()
	return err == nil && len(ring) > 0 &&
		!slices.ContainsFunc(ring, func(s []byte) bool { return len(s) < least })
}

// isAddr accepts host:port. The host may be empty, which means all interfaces, and may have
// characters that Compose allows and a DNS name does not.
func isAddr(f validator.FieldLevel) bool {
	_, port, err := net.SplitHostPort(strings.TrimSpace(f.Field().String())) // an item of a list
	if err != nil || port == "" {
		return false
	}
	_, err = net.LookupPort("tcp", port) // a number, or the name of a service of this machine
	return err == nil
}
