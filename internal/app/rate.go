package app

import (
	"errors"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/seckill"
)

// CheckRate says which field of a sale's rate no limiter can be made of, as a BadRequest.
func CheckRate(r seckill.Rate) error {
	limit := ratelimit.Limit{
		Algorithm: ratelimit.Algorithm(r.Algorithm), PermitsPerSecond: r.PermitsPerSecond,
		MaxBurstSeconds: r.MaxBurstSeconds, MaxWaitMillis: r.MaxWaitMillis,
	}
	terms, err := limit.Terms()
	if field, ok := errors.AsType[*ratelimit.FieldError](err); ok {
		return seckill.BadField("rate."+field.Field, "%s", field.Problem)
	}
	if err == nil && !terms.InRedis() {
		return seckill.BadField("rate.algorithm", "%s works within one process only", r.Algorithm)
	}
	return err
}
