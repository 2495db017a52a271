package config

import (
	"errors"
	"fmt"
	"net"
	"reflect"

	"github.com/go-playground/validator/v10"
)

// check compares every setting with the rules in its validate tag. It does not stop at the first
// violation, so that an operator corrects a deployment once. Of a secret an error has the length
// and never the value.
func (c *Config) check(settings []Setting) []error {
	rules := validator.New()
	problems := []error{
		rules.RegisterValidation("addr", isAddr), rules.RegisterValidation("bytes", isLong),
	}
	v := reflect.ValueOf(c).Elem()
	for _, s := range settings {
		x := v.FieldByIndex(s.index)
		if s.Required && x.IsZero() {
			problems = append(problems, fmt.Errorf("%s: is required: %s", s.Name, s.Help))
		}
		err := rules.Var(x.Interface(), s.field.Tag.Get("validate"))
		if broken, ok := errors.AsType[validator.ValidationErrors](err); ok {
			problems = append(problems, fmt.Errorf("%s: is %v, must be %s (%s %s)", s.Name, x,
				s.Unit, broken[0].Tag(), broken[0].Param()))
		}
	}
	if _, err := c.Auth.Phones(); err != nil {
		problems = append(problems, fmt.Errorf("SECKILL_PHONE_KEYS: %w", err))
	}
	return problems
}

// isAddr accepts host:port. The host may be empty, which means all interfaces, and may have
// characters that Compose allows and a DNS name does not.
func isAddr(f validator.FieldLevel) bool {
	_, port, err := net.SplitHostPort(f.Field().String())
	return err == nil && port != ""
}
