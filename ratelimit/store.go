package ratelimit

import (
	"errors"
	"reflect"

	"github.com/redis/go-redis/v9"
)

// Store is the place of the permits: this process' memory, or a Redis that processes share.
type Store struct {
	client redis.UniversalClient
	shared bool
}

// Memory keeps the permits in this process. Each Limiter takes up to 128 MB, which is some 600,000
// keys, and then drops some early. It drops keys that are full again. Two limiters never share
// permits.
func Memory() Store { return Store{} }

// Redis keeps the permits in a Redis 6.2 or later, in a Redis Cluster, or in the servers of a Ring.
// A key expires when it is full again. Limiters with the same prefix and algorithm share the
// permits of a key; a SlidingWindow of up to 100 Permits is a SlidingLog. A Limiter has up to
// 100,000 keys in Redis at once, and decides about further ones by its share of the limit
// (Processes).
//
// The client needs ContextTimeoutEnabled, so that Timeout applies, and MaxRetries: -1, because a
// repeated call takes permits again. A ClusterClient needs a ClusterStateReloadInterval of a
// second: by default it may try a master that hangs for a minute, although a replica has been
// promoted. The Limiter does not close the client.
func Redis(client redis.UniversalClient) Store { return Store{client: client, shared: true} }

// check refuses a Redis without a client, which would be a limit of this process alone, or a panic
// at the first decision.
func (s Store) check() error {
	of := reflect.ValueOf(s.client)
	if s.shared && (s.client == nil || of.Kind() == reflect.Pointer && of.IsNil()) {
		return errors.New("ratelimit: store: the client of Redis is nil")
	}
	return nil
}
