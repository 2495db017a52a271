package app

import (
	"context"
	"errors"
	"strconv"

	"flashsale.dev/seckill/internal/httpapi"
	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/seckill"
)

// The rules that stand before a random path; the first costs no call to Redis.
const (
	rulePathPerUser = "randomPathPerUser"
	rulePath        = "randomPath"
)

// LimitPath lets a buyer through to a random path, after a wait where there must be one; else it refuses.
func (l *Limits) LimitPath(ctx context.Context, v seckill.View, by seckill.Actor) error {
	attrs := ratelimit.Attributes{Goods: v.GoodsID, User: by.ID, Route: "/randomPath"}
	mine, err := l.Gate.Decide(ctx, rulePathPerUser, attrs, 1)
	if err == nil {
		err = pass(ctx, &mine)
	}
	if err != nil {
		return err
	}
	goods, err := l.Gate.DecideWith(ctx, rulePath, attrs, limitOf(v.Rate), 1)
	if err != nil {
		return err
	}
	if err := pass(ctx, &goods); err != nil {
		mine.Refund()
		return err
	}
	return nil
}

// pass waits for the permits that were booked, or says why there are none.
func pass(ctx context.Context, o *ratelimit.Outcome) error {
	err := o.Wait(ctx)
	switch {
	case err == nil:
		return nil
	case o.Unavailable:
		return seckill.Down("the rate limiter can't be asked", err)
	case errors.Is(err, ratelimit.ErrLimited):
		return denial(o)
	default:
		return seckill.Down("the wait for a permit was broken off", err)
	}
}

func denial(o *ratelimit.Outcome) error {
	e := seckill.Refuse(seckill.RateLimited, "too many requests; try again later")
	e.RetryAfter = o.RetryAfter
	if text := o.Message(); text != "" {
		e.Message = text
	}
	d := &httpapi.Denial{Refusal: e, Header: map[string]string{"Retry-After": strconv.FormatInt(o.RetryAfterSeconds(), 10)}}
	if limit, policy := o.Headers(); limit != "" {
		d.Header["RateLimit"], d.Header["RateLimit-Policy"] = limit, policy
	}
	if f := o.Fallback(); f != nil {
		d.Code, e.Message = f.Code, f.Message
	}
	return d
}

func limitOf(r seckill.Rate) ratelimit.Limit {
	return ratelimit.Limit{
		Algorithm: ratelimit.Algorithm(r.Algorithm), PermitsPerSecond: r.PermitsPerSecond,
		MaxBurstSeconds: r.MaxBurstSeconds, MaxWaitMillis: r.MaxWaitMillis,
	}
}

// CheckRate says which field of a sale's rate no limiter can be made of, as a BadRequest.
func CheckRate(r seckill.Rate) error {
	terms, err := limitOf(r).Terms()
	if field, ok := errors.AsType[*ratelimit.FieldError](err); ok {
		return seckill.BadField("rate."+field.Field, "%s", field.Problem)
	}
	if err == nil && !terms.InRedis() {
		return seckill.BadField("rate.algorithm", "%s works within one process only", r.Algorithm)
	}
	return err
}
