package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/rebuild"
	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/ratelimit/rules"
	"flashsale.dev/seckill/internal/seckill"
)

// print tells a result: the value as JSON, or the sentence.
func (s *stage) print(v any, format string, args ...any) error {
	if !s.json {
		_, err := fmt.Fprintf(s.stdout, format+"\n", args...)
		return err
	}
	enc := json.NewEncoder(s.stdout)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// sure is the flag of commands that destroy something or get in buyers' way.
type sure struct {
	Yes bool `help:"Do not ask whether to."`
}

// confirmed asks, unless -yes was given. Anything but yes is no, and so is nobody there to ask.
func (y sure) confirmed(s *stage, what string) error {
	if y.Yes {
		return nil
	}
	fmt.Fprintf(s.stderr, "%s? [y/N] ", what)
	line, err := bufio.NewReader(s.stdin).ReadString('\n')
	if answer := strings.ToLower(strings.TrimSpace(line)); answer == "y" || answer == "yes" {
		return nil
	}
	if err != nil {
		fmt.Fprintln(s.stderr)
	}
	return usage(errors.New("not confirmed, nothing was done: answer y, or give -yes"))
}

// The exit codes that the help tells.
const (
	codeUsage      = 2
	codeRefused    = 3
	codeUnbalanced = 4
	codeRebuilding = 5
)

// coding is an error with an exit code; app.Main asks for it.
type coding struct {
	code int
	err  error
}

// Error is the error's text.
func (c *coding) Error() string { return c.err.Error() }

// Unwrap gives the error.
func (c *coding) Unwrap() error { return c.err }

// ExitCode is the program's.
func (c *coding) ExitCode() int { return c.code }

func usage(err error) error { return &coding{code: codeUsage, err: err} }

// coded finds the exit code of an error.
func coded(err error) error {
	var field *ratelimit.FieldError
	if _, has := errors.AsType[*coding](err); err == nil || has {
		return err
	}
	switch reason := seckill.ReasonOf(err); {
	case errors.Is(err, rebuild.ErrRebuilding):
		return &coding{code: codeRebuilding, err: err}
	case errors.As(err, &field), reason == seckill.BadRequest:
		return usage(err)
	case reason != "" && reason != seckill.Unavailable,
		errors.Is(err, seckill.ErrNoSuchGoods), errors.Is(err, rebuild.ErrRetired), errors.Is(err, order.ErrNoSuchDeadLetter), errors.Is(err, rules.ErrNoRule):
		return &coding{code: codeRefused, err: err}
	}
	return err
}
