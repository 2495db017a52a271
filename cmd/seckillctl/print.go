package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/rebuild"
	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/ratelimit/rules"
	"flashsale.dev/seckill/internal/seckill"
)

// print writes a result: the value as JSON, or the sentence. Every command prints through it or
// through printLine, so that -o json works everywhere.
func (s *session) print(v any, format string, args ...any) error {
	if !s.json {
		_, err := fmt.Fprintf(s.stdout, format+"\n", args...)
		return err
	}
	enc := json.NewEncoder(s.stdout)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// printLine writes an item of a list that may be longer than the memory: a line of text or of JSON.
func (s *session) printLine(v any, format string, args ...any) error {
	if s.json {
		return json.NewEncoder(s.stdout).Encode(v)
	}
	return s.print(nil, format, args...)
}

// confirmation holds the flag of commands that destroy data or affect buyers.
type confirmation struct {
	Yes bool `help:"Do not ask for confirmation."`
}

// confirmed asks for a confirmation of what, unless -yes is set. It returns nil for the answers y
// and yes, and an error for any other and at the end of the input. So a script must pass -yes.
func (c confirmation) confirmed(s *session, what string) error {
	if c.Yes {
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
	return usage(errors.New("not confirmed, nothing was done: answer y, or use -yes"))
}

// The exit codes; the help describes them. They are part of the interface: scripts branch on them,
// so a code keeps its meaning.
const (
	codeFailed     = 1
	codeUsage      = 2
	codeRefused    = 3
	codeUnbalanced = 4
	codeRebuilding = 5
	codeBadDraw    = 6
)

// exitError is an error that sets the exit code of the program, which app.Main reads.
type exitError struct {
	error
	code int
}

// Unwrap returns the error.
func (e *exitError) Unwrap() error { return e.error }

// ExitCode returns the exit code of the program.
func (e *exitError) ExitCode() int { return e.code }

// usage makes an error one of a wrong command line.
func usage(err error) error { return &exitError{err, codeUsage} }

// withExitCode adds the exit code that belongs to an error. It maps the refusals of all packages in
// one place, so that commands return errors unchanged.
func withExitCode(err error) error {
	var field *ratelimit.FieldError
	if _, has := errors.AsType[*exitError](err); err == nil || has {
		return err
	}
	switch reason := apierror.ReasonOf(err); {
	case errors.Is(err, rebuild.ErrRebuilding):
		return &exitError{err, codeRebuilding}
	case errors.As(err, &field), reason == apierror.BadRequest:
		return usage(err)
	case reason != "" && reason != apierror.Unavailable,
		errors.Is(err, seckill.ErrNoSuchGoods), errors.Is(err, rebuild.ErrRetired),
		errors.Is(err, order.ErrNoSuchDeadLetter), errors.Is(err, rules.ErrNoRule):
		return &exitError{err, codeRefused}
	}
	return err
}
