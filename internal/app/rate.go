package app

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"reflect"
	"strconv"
	"time"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/httpapi"
	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/ratelimit/rules"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/catalog"
	"flashsale.dev/seckill/internal/seckill/salechange"
	"flashsale.dev/seckill/internal/sqlstore"
)

// checkRate returns a BadRequest that names the field of a sale's rate that no limiter accepts.
func checkRate(r seckill.Rate) error {
	params, err := httpapi.LimitOfRate(r).Params()
	if field, ok := errors.AsType[*ratelimit.FieldError](err); ok {
		return apierror.NewBadField("rate."+field.Field, "%s", field.Problem)
	}
	if err == nil && !params.InRedis() {
		return apierror.NewBadField("rate.algorithm", "%s works within one process only",
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

// auditTimeout bounds how long a change of a limiter waits for MySQL.
const auditTimeout = 2 * time.Second

// auditLimiters records operators' changes of limiters in the audit log, with the fields that
// differ. The entry of a sale's limiter belongs to the sale, so that its merchant sees it. The log
// has a change that MySQL cannot record, because an operator must be able to limit callers while
// MySQL is down.
func auditLimiters(store *sqlstore.Store, log *slog.Logger) rules.Audit {
	return func(
		ctx context.Context, rule, key string, was ratelimit.Limit, became *ratelimit.Limit,
	) {
		action, from, to := salechange.ActDeleteLimiter, limitFields(was), map[string]any{}
		if became != nil {
			action, to = salechange.ActSetLimiter, limitFields(*became)
		}
		for name, value := range from {
			if to[name] == value {
				delete(from, name)
				delete(to, name)
			}
		}
		to["limiter"] = rule + "/" + key
		goodsID := int64(0)
		if id, err := strconv.ParseInt(key, 10, 64); err == nil && rule == httpapi.PathRule {
			goodsID = max(id, 0)
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), auditTimeout)
		defer cancel()
		now, err := store.Now(ctx)
		if err == nil {
			err = store.AuditLimiter(ctx, action, goodsID, from, to, now)
		}
		if err != nil {
			log.WarnContext(ctx, "the audit log lacks a change of a limiter, because MySQL does not "+
				"answer", "action", action, "actor", seckill.ActorOf(ctx).ID, "from", from, "to", to,
				"err", err)
		}
	}
}

// limitFields returns the fields of a limit that are not zero, by their API names.
func limitFields(l ratelimit.Limit) map[string]any {
	all := map[string]any{
		"algorithm": string(l.Algorithm), "permitsPerSecond": l.PermitsPerSecond,
		"maxBurstSeconds": l.MaxBurstSeconds, "maxWaitMillis": l.MaxWaitMillis, "burst": l.Burst,
		"delay": l.Delay, "nodelay": l.NoDelay, "limit": l.Limit,
		"intervalSeconds": l.IntervalSeconds, "parts": l.Parts, "warmupSeconds": l.WarmupSeconds,
		"coldFactor": l.ColdFactor,
	}
	maps.DeleteFunc(all, func(_ string, v any) bool { return reflect.ValueOf(v).IsZero() })
	return all
}
