package redisstore

import (
	"fmt"
	"strconv"
	"time"

	"flashsale.dev/seckill/internal/seckill"
)

// reply decodes a script's answer field by field. It keeps the first error, so that callers check
// once, at the end.
type reply struct {
	fields []any
	next   int
	err    error
}

func (r *reply) take() any {
	if r.next >= len(r.fields) {
		r.fail("has no field %d", r.next)
		return nil
	}
	r.next++
	return r.fields[r.next-1]
}

// peek returns the next field; nil after the last one.
func (r *reply) peek() any {
	if r.next >= len(r.fields) {
		return nil
	}
	return r.fields[r.next]
}

func (r *reply) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("the answer of a redis script "+format, args...)
	}
}

func (r *reply) int() int64 {
	switch v := r.take().(type) {
	case int64:
		return v
	case string:
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			r.fail("has no number in field %d: %w", r.next-1, err)
		}
		return n
	default:
		r.fail("has a %T in field %d, not a number", v, r.next-1)
		return 0
	}
}

func (r *reply) string() string {
	s, ok := r.take().(string)
	if !ok {
		r.fail("has no text in field %d", r.next-1)
	}
	return s
}

func (r *reply) millis() time.Time { return time.UnixMilli(r.int()).UTC() }

// optionalMillis reads a time; 0 is the zero time.
func (r *reply) optionalMillis() time.Time {
	if ms := r.int(); ms != 0 {
		return time.UnixMilli(ms).UTC()
	}
	return time.Time{}
}

// gate reads the first two fields of the answer of every gated script.
func (r *reply) gate() (seckill.GateState, int64) {
	state, epoch := seckill.GateState(r.int()), r.int()
	return state, epoch
}
