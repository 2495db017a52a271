package ratelimit

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
