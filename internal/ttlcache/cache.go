// Package ttlcache caches values that are expensive to load and may be a little old.
//
// A value is served for TTL, counted from the start of its load. Callers that miss the same key
// share one load, so a burst costs one call of the source. A load outlives the caller that started
// it: its context keeps the caller's values but not its cancellation. Errors are not cached.
//
// With Rest, a value whose load takes long is loaded less often. Callers then do not wait for its
// next load: they get the former value.
//
// A Cache is safe for concurrent use.
package ttlcache

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// Options configure a Cache. Every field but Rest and MaxAge is required.
type Options struct {
	TTL         time.Duration    // age at which a value is loaded again
	MaxEntries  int              // values kept; further ones are returned and not kept
	LoadTimeout time.Duration    // deadline of one load
	Now         func() time.Time // clock of the ages
	// Rest is how many times as long as its load took a value is served, where that is longer than
	// TTL. Loads then take a bounded part of the time.
	Rest int
	// MaxAge is the age from which Get waits until the next load of a value ends. Before, it waits
	// for patience and returns the value. It ends each rest at half of it.
	MaxAge time.Duration
}

// patience is how long Get waits for the next load of a value that is younger than MaxAge.
const patience = 500 * time.Millisecond

// Cache maps keys to values that it loads on demand.
type Cache[K comparable, V any] struct {
	opts  Options
	loads singleflight.Group

	mu        sync.Mutex
	entries   map[K]entry[V]
	cleanedAt time.Time // of the last search for old entries
}

type entry[V any] struct {
	value    V
	loadedAt time.Time
	ttl      time.Duration
}

// New returns an empty cache.
func New[K comparable, V any](opts Options) *Cache[K, V] {
	return &Cache[K, V]{opts: opts, entries: make(map[K]entry[V])}
}

// Get returns the value of a key and loads it where there is none that is younger than TTL or than
// its rest. It returns the error of the load, or the context's error where the context ends first.
func (c *Cache[K, V]) Get(
	ctx context.Context, key K, load func(context.Context) (V, error),
) (V, error) {
	e := c.cached(key)
	if c.age(e) < e.ttl {
		return e.value, nil
	}
	// The text of the key is only built on a miss; %#v keeps different keys apart.
	done := c.loads.DoChan(fmt.Sprintf("%#v", key), func() (any, error) {
		// Another load may have ended between this caller's miss and this call.
		if e := c.cached(key); c.age(e) < e.ttl {
			return e.value, nil
		}
		return c.load(context.WithoutCancel(ctx), key, load)
	})
	var late <-chan time.Time
	if c.age(e) < c.opts.MaxAge {
		late = time.After(patience)
	}
	var none V
	select {
	case <-late:
		return e.value, nil
	case r := <-done:
		if r.Err != nil {
			return none, r.Err
		}
		return r.Val.(V), nil
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
}

// cached returns the entry of a key; the zero entry, which is very old, where there is none.
func (c *Cache[K, V]) cached(key K) entry[V] {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.entries[key]
}

func (c *Cache[K, V]) age(e entry[V]) time.Duration { return c.opts.Now().Sub(e.loadedAt) }

// load loads a value and stores it with the start of the load as its time.
func (c *Cache[K, V]) load(
	ctx context.Context, key K, load func(context.Context) (V, error),
) (V, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opts.LoadTimeout)
	defer cancel()
	started := c.opts.Now()
	v, err := load(ctx)
	if err == nil {
		rest := min(time.Duration(c.opts.Rest)*c.opts.Now().Sub(started), c.opts.MaxAge/2)
		c.store(key, entry[V]{value: v, loadedAt: started, ttl: max(c.opts.TTL, rest)})
	}
	return v, err
}

// store keeps an entry unless the cache is full of other ones. Callers may choose the keys, so a
// bound is needed to protect the memory. It searches for entries that are too old once a second:
// with thousands of keys, a search for each load would take a good part of a processor.
func (c *Cache[K, V]) store(key K, e entry[V]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.opts.Now(); now.Sub(c.cleanedAt) >= time.Second {
		c.cleanedAt = now
		maps.DeleteFunc(c.entries, func(_ K, old entry[V]) bool {
			return now.Sub(old.loadedAt) >= max(old.ttl, c.opts.MaxAge)
		})
	}
	if _, known := c.entries[key]; known || len(c.entries) < c.opts.MaxEntries {
		c.entries[key] = e
	}
}
