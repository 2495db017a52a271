// Package ttlcache caches values that are expensive to load and may be a little old.
//
// A value is served for TTL, counted from the start of its load. Callers that miss the same key
// share one load, so a burst costs one call of the source. A load outlives the caller that started
// it: its context keeps the caller's values but not its cancellation. Errors are not cached.
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

// Options configure a Cache. Every field is required.
type Options struct {
	TTL         time.Duration    // age at which a value is loaded again
	MaxEntries  int              // values kept; further ones are returned and not kept
	LoadTimeout time.Duration    // deadline of one load
	Now         func() time.Time // clock of the ages
}

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
}

// New returns an empty cache.
func New[K comparable, V any](opts Options) *Cache[K, V] {
	return &Cache[K, V]{opts: opts, entries: make(map[K]entry[V])}
}

// Get returns the value of a key and loads it where there is none that is younger than TTL. It
// returns the error of the load, or the context's error where the context ends first.
func (c *Cache[K, V]) Get(
	ctx context.Context, key K, load func(context.Context) (V, error),
) (V, error) {
	if v, ok := c.cached(key); ok {
		return v, nil
	}
	// The text of the key is only built on a miss; %#v keeps different keys apart.
	done := c.loads.DoChan(fmt.Sprintf("%#v", key), func() (any, error) {
		// Another load may have ended between this caller's miss and this call.
		if v, ok := c.cached(key); ok {
			return v, nil
		}
		return c.load(context.WithoutCancel(ctx), key, load)
	})
	var none V
	select {
	case r := <-done:
		if r.Err != nil {
			return none, r.Err
		}
		return r.Val.(V), nil
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
}

// cached returns the value of a key if it is younger than TTL.
func (c *Cache[K, V]) cached(key K) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[key]
	return e.value, ok && c.opts.Now().Sub(e.loadedAt) < c.opts.TTL
}

// load loads a value and stores it with the start of the load as its time.
func (c *Cache[K, V]) load(
	ctx context.Context, key K, load func(context.Context) (V, error),
) (V, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opts.LoadTimeout)
	defer cancel()
	started := c.opts.Now()
	v, err := load(ctx)
	if err == nil {
		c.store(key, entry[V]{value: v, loadedAt: started})
	}
	return v, err
}

// store keeps an entry unless the cache is full of other ones. Callers may choose the keys, so a
// bound is needed to protect the memory. It searches for entries that are too old once a second: with
// thousands of keys, a search for each load would take a good part of a processor.
func (c *Cache[K, V]) store(key K, e entry[V]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.opts.Now(); now.Sub(c.cleanedAt) >= time.Second {
		c.cleanedAt = now
		maps.DeleteFunc(c.entries, func(_ K, old entry[V]) bool {
			return now.Sub(old.loadedAt) >= c.opts.TTL
		})
	}
	if _, known := c.entries[key]; known || len(c.entries) < c.opts.MaxEntries {
		c.entries[key] = e
	}
}
