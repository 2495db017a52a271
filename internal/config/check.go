package config

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"flashsale.dev/seckill/internal/auth"
)

// check compares every setting with the bounds in its tags, and with its type. It does not stop at
// the first, so that an operator corrects a deployment once.
func (c *Config) check(settings []Setting) []error {
	var problems []error
	v := reflect.ValueOf(c).Elem()
	for _, s := range settings {
		if err := s.check(v.FieldByIndex(s.index)); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", s.Name, err))
		}
	}
	return problems
}

// check returns the problem of one value, or nil.
func (s Setting) check(v reflect.Value) error {
	if s.Required && v.IsZero() {
		return fmt.Errorf("is required: %s", s.Help)
	}
	switch x := v.Interface().(type) {
	case time.Duration:
		return between(x, s.field, time.ParseDuration)
	case int:
		return between(x, s.field, strconv.Atoi)
	case Secret:
		return s.checkSecret(x)
	case string:
		return s.checkText(x)
	case []string:
		return s.checkAddrs(x)
	default:
		return nil
	}
}

// between checks a value against the bounds of its tags. Bounds are written in the setting's own
// form, such as 100ms, so a tag reads like the documentation.
func between[T cmp.Ordered](x T, f reflect.StructField, read func(string) (T, error)) error {
	low, err := read(f.Tag.Get("min"))
	high, err2 := read(f.Tag.Get("max"))
	if err := errors.Join(err, err2); err != nil {
		return fmt.Errorf("bounds: %w", err)
	}
	if x < low || x > high {
		return fmt.Errorf("is %v, must be %v to %v", x, low, high)
	}
	return nil
}

// checkSecret checks the form of a secret. The error contains the length and never the value.
func (s Setting) checkSecret(x Secret) error {
	if strings.HasPrefix(s.Unit, "at least") && x != "" && len(x) < auth.MinSecret {
		return fmt.Errorf("has %d bytes, must have at least %d", len(x), auth.MinSecret)
	}
	if strings.HasPrefix(s.Unit, "comma list of id:key") {
		_, err := auth.ParsePhoneKeys(string(x))
		return err
	}
	return nil
}

// checkText checks a text by its unit: the unit documents the form and selects the check.
func (s Setting) checkText(x string) error {
	words := strings.Fields(s.field.Tag.Get("oneof"))
	if len(words) > 0 && !slices.Contains(words, x) {
		return fmt.Errorf("is %q, must be one of %s", x, strings.Join(words, ", "))
	}
	if s.Unit == "host:port" {
		return checkAddr(x)
	}
	if s.Unit == "URL" && x != "" {
		return checkURL(x)
	}
	return nil
}

func (s Setting) checkAddrs(all []string) error {
	var problems []error
	for _, x := range all {
		problems = append(problems, checkAddr(x))
	}
	return errors.Join(problems...)
}

// checkAddr accepts host:port. An empty host means all interfaces.
func checkAddr(x string) error {
	if _, port, err := net.SplitHostPort(x); err != nil || port == "" {
		return fmt.Errorf("is %q, must be host:port", x)
	}
	return nil
}

// checkURL accepts http and https URLs. A missing scheme is the usual mistake, and the client would
// report it only at the first call.
func checkURL(x string) error {
	u, err := url.Parse(x)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("is %q, must be an http:// or https:// URL", x)
	}
	return nil
}
