package app

import (
	"context"
	"errors"
	"strconv"

	"flashsale.dev/seckill/internal/httpapi"
	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/ratelimit/rules"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/catalog"
)

// CheckRate returns a BadRequest that names the field of a sale's rate that no limiter accepts.
func CheckRate(r seckill.Rate) error {
	params, err := httpapi.LimitOfRate(r).Params()
	if field, ok := errors.AsType[*ratelimit.FieldError](err); ok {
		return seckill.NewFieldError("rate."+field.Field, "%s", field.Problem)
	}
	if err == nil && !params.InRedis() {
		return seckill.NewFieldError("rate.algorithm", "%s works within one process only",
			r.Algorithm)
	}
	return err
}

// saleRates reads the rate that a sale sets, for operators who read that sale's limiter. Other
// rules have no such rate.
func saleRates(sales *catalog.Catalog) rules.OwnLimit {
	return func(ctx context.Context, rule, key string) (ratelimit.Limit, bool) {
		goodsID, err := strconv.ParseInt(key, 10, 64)
		if rule != httpapi.PathRule || err != nil {
			return ratelimit.Limit{}, false
		}
		v, err := sales.Sale(ctx, goodsID)
		return httpapi.LimitOfRate(v.Rate), err == nil
	}
}
