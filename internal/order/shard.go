package order

// Shard is the queue, 0 to shards-1, that carries a goods' messages: all of them one queue, so that they keep their
// order. It depends on nothing but its arguments and never changes between releases: publisher, relay and consumer
// must agree. The hash is the finaliser of splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
// generators", 2014), since goods ids come in runs that a plain modulo would send to one shard. shards must be > 0.
func Shard(goodsID int64, shards int) int {
	z := uint64(goodsID) + 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	z ^= z >> 31
	return int(z % uint64(shards))
}
