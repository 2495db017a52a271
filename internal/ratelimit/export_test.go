package ratelimit

import "strconv"

// Waiting is how many callers wait for Redis' answer on a key, for tests that
// must know that all are there.
func (g *Gate) Waiting(rule, key string) (n int64) {
	r, err := g.book.find(rule)
	if err != nil {
		return 0
	}
	g.keys.with(r.redisKey(key), g.opts.Now(), func(k *keyState) { n = k.waiting })
	return n
}

// SlotOf is a key's slot, as the breakers see it.
func SlotOf(key string) int { return slotOf(key) }

// GoodsKey lies in the slot of all limiters of a goods.
func GoodsKey(goods int64) string {
	return (&compiled{Rule: Rule{By: []string{"goods"}}}).redisKey(strconv.FormatInt(goods, 10))
}
