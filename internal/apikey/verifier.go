package apikey

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/batcher"
	"flashsale.dev/seckill/internal/workers"
)

const (
	// maxAge is how long a node uses what it has read about a key, counted from the start of the
	// read. It is below the second within which a revocation works everywhere.
	maxAge = 900 * time.Millisecond
	// cacheSize bounds each of the two caches: of keys, and of ids without a key.
	cacheSize = 10_000
	// maxIDs bounds the ids of one statement.
	maxIDs = 256
	// usePrecision is the precision of a key's last use: a key in use costs a write a minute.
	usePrecision = time.Minute
	// useInterval is how often a node writes the uses of keys.
	useInterval = 10 * time.Second
	useTimeout  = 5 * time.Second
)

// Reader is what a Verifier needs of the store.
type Reader interface {
	// APIKeysByID returns those of the given keys that exist, in any order.
	APIKeysByID(ctx context.Context, ids []string) ([]Key, error)
	// UseAPIKeys sets the time of the last use of keys, except for those with a later time.
	UseAPIKeys(ctx context.Context, ids []string, at time.Time) error
	// Now returns the time of the database's server.
	Now(ctx context.Context) (time.Time, error)
}

// found is what a read returned for one id. Its key is nil where none exists.
type found struct {
	key    *Key
	readAt time.Time // the start of the read
}

// Verifier verifies keys on one node. It is safe for concurrent use.
type Verifier struct {
	store Reader
	now   func() time.Time
	log   *slog.Logger

	// Strangers choose the ids of the second cache, so they can't displace keys from the first.
	known, unknown *lru.Cache[string, found]
	batches        *batcher.Batcher[struct{}, string, found]

	mu   sync.Mutex
	used map[string]time.Time // LastUsedAt, as stored, of the keys used since the last write
}

// NewVerifier returns a verifier. Run must run beside it.
func NewVerifier(store Reader, now func() time.Time, log *slog.Logger) *Verifier {
	known, _ := lru.New[string, found](cacheSize) // it fails for sizes below 1
	unknown, _ := lru.New[string, found](cacheSize)
	v := &Verifier{
		store: store, now: now, log: log, known: known, unknown: unknown,
		used: map[string]time.Time{},
	}
	v.batches = batcher.New(maxIDs, v.read)
	return v
}

// Verify returns the key of a text. It refuses with UNAUTHENTICATED, or with UNAVAILABLE where the
// store does not answer within maxAge: a key that may have been revoked must not pass. No refusal
// repeats a part of the text.
func (v *Verifier) Verify(ctx context.Context, text string) (Key, error) {
	id, secret, ok := parse(text)
	if !ok {
		return Key{}, errNotValid()
	}
	f, err := v.find(ctx, id)
	switch {
	case err != nil:
		return Key{}, err
	case f.key == nil || !f.key.has(secret):
		return Key{}, errNotValid()
	case !f.key.RevokedAt.IsZero():
		return Key{}, errRevoked()
	}
	v.noteUse(f.key)
	return *f.key, nil
}

// Check returns an error if a key that Verify has accepted is revoked by now. A stream or a long
// download calls it from time to time. Its refusals are Verify's.
func (v *Verifier) Check(ctx context.Context, id string) error {
	f, err := v.find(ctx, id)
	if err == nil && (f.key == nil || !f.key.RevokedAt.IsZero()) {
		err = errRevoked()
	}
	return err
}

func errRevoked() error {
	return apierror.New(apierror.Unauthenticated, "the API key has been revoked")
}

func errNotValid() error {
	return apierror.New(apierror.Unauthenticated, "the API key is not valid")
}

// find returns what is known about an id, at most maxAge old.
func (v *Verifier) find(ctx context.Context, id string) (found, error) {
	for _, cache := range []*lru.Cache[string, found]{v.known, v.unknown} {
		if f, ok := cache.Get(id); ok && v.isFresh(f) {
			return f, nil
		}
	}
	f, err := v.batches.Do(ctx, struct{}{}, id)
	if err == nil && !v.isFresh(f) {
		err = fmt.Errorf("the read took %s", v.now().Sub(f.readAt))
	}
	if err != nil {
		return found{}, apierror.NewUnavailable("API keys can't be checked", err)
	}
	return f, nil
}

func (v *Verifier) isFresh(f found) bool { return v.now().Sub(f.readAt) < maxAge }

// read reads the keys of concurrent callers in one statement and caches them.
func (v *Verifier) read(ctx context.Context, _ struct{}, ids []string) ([]found, error) {
	ctx, cancel := context.WithTimeout(ctx, maxAge)
	defer cancel()
	readAt, distinct := v.now(), slices.Compact(slices.Sorted(slices.Values(ids)))
	keys, err := v.store.APIKeysByID(ctx, distinct)
	if err != nil {
		return nil, err
	}
	byID := make(map[string]*Key, len(keys))
	for _, k := range keys {
		byID[k.ID] = &k
	}
	for _, id := range distinct {
		if f := (found{byID[id], readAt}); f.key != nil {
			v.known.Add(id, f)
		} else {
			v.unknown.Add(id, f)
		}
	}
	answers := make([]found, len(ids))
	for i, id := range ids {
		answers[i] = found{byID[id], readAt}
	}
	return answers, nil
}

// noteUse remembers the use of a key.
func (v *Verifier) noteUse(k *Key) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.used[k.ID] = k.LastUsedAt
}

// Run writes the uses of keys until ctx ends. A stop loses the uses of the last seconds.
func (v *Verifier) Run(ctx context.Context) error {
	return workers.Every(ctx, useInterval, v.writeUses)
}

// writeUses writes now as the last use of the keys that were used since the last call. It leaves
// out keys whose stored use is less than usePrecision old. It drops what it cannot write: the next
// use of the key is written instead.
func (v *Verifier) writeUses(ctx context.Context) {
	v.mu.Lock()
	used := v.used
	v.used = map[string]time.Time{}
	v.mu.Unlock()
	if len(used) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, useTimeout)
	defer cancel()
	now, err := v.store.Now(ctx)
	ids := make([]string, 0, len(used))
	for id, recorded := range used {
		if now.Sub(recorded) >= usePrecision {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids) // so that nodes lock the rows in one order
	for part := range slices.Chunk(ids, maxIDs) {
		if err == nil {
			err = v.store.UseAPIKeys(ctx, part, now)
		}
	}
	if err != nil {
		v.log.WarnContext(ctx, "cannot write the last use of API keys", "err", err)
	}
}
