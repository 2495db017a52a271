package order

// Shard returns the queue, 0 to shards-1, for the messages of a goods id. One queue keeps them in
// order. The result depends on the arguments alone and never changes between releases, because
// publisher, relay and consumer must agree. shards must be > 0.
//
// The hash is the finaliser of splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom
// number generators", 2014). Goods ids made together are close to each other, and a plain modulo
// would not spread them.
func Shard(goodsID int64, shards int) int {
	z := uint64(goodsID) + 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	z ^= z >> 31
	return int(z % uint64(shards))
}
