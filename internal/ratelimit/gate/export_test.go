package gate

import (
	"strconv"

	"flashsale.dev/seckill/internal/ratelimit/rules"
)

// Waiting is how many callers wait for Redis' answer on a key, for tests that
// must know that all are there.
func (g *Gate) Waiting(rule, key string) (n int64) {
	r, err := g.book.Find(rule)
	if err != nil {
		return 0
	}
	g.keys.with(r.RedisKey(key), g.opts.Now(), func(k *keyState) { n = k.waiting })
	return n
}

// SlotOf is a key's slot, as the breakers see it.
func SlotOf(key string) int { return slotOf(key) }

// GoodsKey lies in the slot of all limiters of a goods.
func GoodsKey(goods int64) string {
	return (&rules.Compiled{Rule: rules.Rule{By: []string{"goods"}}}).RedisKey(
		strconv.FormatInt(goods, 10))
}
