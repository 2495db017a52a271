package gate

import (
	"strconv"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/ratelimit/rules"
)

// Waiting returns the number of callers that wait for Redis' answer on a key, whatever its limit.
// Tests use it to wait until all callers have arrived.
func (g *Gate) Waiting(rule, key string) (n int64) {
	r, err := g.book.Find(rule)
	if err != nil {
		return 0
	}
	for _, redisKey := range r.RedisKeys(key) {
		g.keys.update(redisKey, func(k *keyState) { n += k.waiting })
	}
	return n
}

// SlotOf returns the slot by which the gate selects a key's circuit breaker.
func SlotOf(key string) int { return slotOf(key) }

// GoodsKey returns a key in the slot of all limiters of a goods.
func GoodsKey(goods int64) string {
	book, err := rules.New(rules.Rule{Name: "r", By: []string{"goods"}})
	if err != nil {
		return ""
	}
	rule, err := book.Find("r")
	if err != nil {
		return ""
	}
	return rule.RedisKey(strconv.FormatInt(goods, 10), ratelimit.KindBucket)
}
