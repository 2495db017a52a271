package apikey

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/must"
)

// memory is a store in memory that counts its reads.
type memory struct {
	mu    sync.Mutex
	keys  map[string]Key
	reads [][]string
	uses  [][]string
	takes time.Duration // of a read, after it has seen the keys
	deaf  bool          // a read ignores its deadline
	err   error
}

func (m *memory) AddAPIKey(_ context.Context, k Key) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keys[k.ID] = k
	return nil
}

func (m *memory) APIKeys(context.Context, string, string, int) ([]Key, error) { return nil, m.err }

func (m *memory) APIKeysByID(ctx context.Context, ids []string) (all []Key, err error) {
	m.mu.Lock()
	m.reads = append(m.reads, ids)
	for _, id := range ids {
		if k, ok := m.keys[id]; ok {
			all = append(all, k)
		}
	}
	err = m.err
	m.mu.Unlock()
	if m.deaf {
		time.Sleep(m.takes)
		return all, err
	}
	select {
	case <-time.After(m.takes):
		return all, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (m *memory) CountAPIKeys(_ context.Context, merchantID string) (n int, err error) {
	for _, k := range m.keys {
		if k.MerchantID == merchantID && k.RevokedAt.IsZero() {
			n++
		}
	}
	return n, m.err
}

func (m *memory) RevokeAPIKey(_ context.Context, id, by string, now time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.keys[id]
	k.RevokedAt, k.RevokedBy = now, by
	m.keys[id] = k
	return m.err
}

// Now is an hour ahead of this host's clock.
func (m *memory) Now(context.Context) (time.Time, error) {
	return time.Now().Add(time.Hour), m.err
}

func (m *memory) UseAPIKeys(_ context.Context, ids []string, at time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.uses = append(m.uses, ids)
	for _, id := range ids {
		k := m.keys[id]
		k.LastUsedAt = at
		m.keys[id] = k
	}
	return m.err
}

func newFixture(t *testing.T) (*memory, *Service, *Verifier, *bytes.Buffer) {
	t.Helper()
	m, log := &memory{keys: map[string]Key{}}, &bytes.Buffer{}
	v := NewVerifier(m, time.Now, slog.New(slog.NewTextHandler(log, nil)))
	return m, &Service{Store: m}, v, log
}

func merchant() seckill.Actor { return seckill.Actor{ID: "70", Role: seckill.Merchant} }

func make1(t *testing.T, s *Service) (Key, string) {
	t.Helper()
	k, text, err := s.Create(t.Context(), merchant(),
		NewKey{MerchantID: "70", Name: "erp", Scopes: []Scope{OrdersRead, SalesRead}})
	require.NoError(t, err)
	return k, text
}

// TestVerify_RevocationWorksWithinMaxAge checks the bound of the cache with a fake clock: a node
// that has just read a key accepts it until maxAge after that read, and never longer.
func TestVerify_RevocationWorksWithinMaxAge(t *testing.T) {
	require.Less(t, maxAge, time.Second)
	synctest.Test(t, func(t *testing.T) {
		m, s, v, _ := newFixture(t)
		k, text := make1(t, s)
		must.Get(v.Verify(t.Context(), text))(t)
		revoked := must.Get(s.Revoke(t.Context(), merchant(), k.ID))(t)
		require.False(t, revoked.RevokedAt.IsZero())
		reads := len(m.reads)
		time.Sleep(maxAge - 1)
		must.Get(v.Verify(t.Context(), text))(t)
		require.NoError(t, v.Check(t.Context(), k.ID))
		require.Len(t, m.reads, reads, "from the cache")
		time.Sleep(time.Nanosecond)
		_, err := v.Verify(t.Context(), text)
		require.Equal(t, apierror.Unauthenticated, apierror.ReasonOf(err))
		require.ErrorContains(t, err, "has been revoked")
		require.Equal(t, apierror.Unauthenticated, apierror.ReasonOf(v.Check(t.Context(), k.ID)))
	})
}

// TestVerify_AgeCountsFromTheStartOfTheRead checks that a slow read, whose result may be as old as
// its start, makes no key valid for longer.
func TestVerify_AgeCountsFromTheStartOfTheRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s, v, _ := newFixture(t)
		k, text := make1(t, s)
		m.takes = maxAge - time.Millisecond
		must.Get(v.Verify(t.Context(), text))(t) // it has seen the key before the revocation
		m.takes = 0
		must.Get(s.Revoke(t.Context(), merchant(), k.ID))(t)
		must.Get(v.Verify(t.Context(), text))(t)
		time.Sleep(time.Millisecond)
		_, err := v.Verify(t.Context(), text)
		require.Equal(t, apierror.Unauthenticated, apierror.ReasonOf(err))
	})
}

// TestVerify_RefusesWhatItCannotCheck checks that a store which fails or takes longer than maxAge
// lets no key pass, and that the error is not cached.
func TestVerify_RefusesWhatItCannotCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s, v, _ := newFixture(t)
		_, text := make1(t, s)
		m.takes = maxAge + 1
		_, err := v.Verify(t.Context(), text)
		require.Equal(t, apierror.Unavailable, apierror.ReasonOf(err))
		m.deaf = true
		_, err = v.Verify(t.Context(), text)
		require.Equal(t, apierror.Unavailable, apierror.ReasonOf(err),
			"it has read the key too long ago")
		m.takes, m.err = 0, errors.New("down")
		_, err = v.Verify(t.Context(), text)
		require.Equal(t, apierror.Unavailable, apierror.ReasonOf(err))
		m.err = nil
		must.Get(v.Verify(t.Context(), text))(t)
	})
}

// TestVerify_ConcurrentCallersShareReads checks that 256 callers with one key cost one read, and
// 256 callers with invented keys at most two: the first of them alone, and all others.
func TestVerify_ConcurrentCallersShareReads(t *testing.T) {
	for _, c := range []struct {
		name  string
		texts func(s *Service, i int) string
	}{
		{"one key", nil},
		{"invented keys", func(*Service, int) string {
			_, text := newText(time.Now())
			return text
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, s, v, _ := newFixture(t)
				_, text := make1(t, s)
				m.takes = 10 * time.Millisecond
				var wg sync.WaitGroup
				for i := range 256 {
					mine, want := text, apierror.Reason("")
					if c.texts != nil {
						mine, want = c.texts(s, i), apierror.Unauthenticated
					}
					wg.Go(func() {
						_, err := v.Verify(t.Context(), mine)
						require.Equal(t, want, apierror.ReasonOf(err))
					})
				}
				wg.Wait()
				require.LessOrEqual(t, len(m.reads), 2)
			})
		})
	}
}

// TestVerify_RemembersUnknownKeys checks that a repeated unknown key costs a read per maxAge, and
// is found once it exists. Any number of unknown keys displaces no key from the cache.
func TestVerify_RemembersUnknownKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s, v, _ := newFixture(t)
		id, unknown := newText(time.Now())
		_, text := make1(t, s)
		must.Get(v.Verify(t.Context(), text))(t)
		for range 10 {
			_, err := v.Verify(t.Context(), unknown)
			require.Equal(t, apierror.Unauthenticated, apierror.ReasonOf(err))
		}
		require.Len(t, m.reads, 2)
		for range cacheSize + 1 {
			_, another := newText(time.Now())
			_, err := v.Verify(t.Context(), another)
			require.Error(t, err)
		}
		require.Equal(t, cacheSize, v.unknown.Len())
		reads := len(m.reads)
		must.Get(v.Verify(t.Context(), text))(t)
		require.Len(t, m.reads, reads)

		_, secret, _ := parse(unknown)
		m.keys[id] = Key{ID: id, MerchantID: "70", Hash: hashOf(secret)}
		time.Sleep(maxAge)
		must.Get(v.Verify(t.Context(), unknown))(t)
	})
}

// TestVerify_WrongSecretsCostNoRead checks that guesses at a known id are judged from the cache,
// and that they do not count as a use.
func TestVerify_WrongSecretsCostNoRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s, v, _ := newFixture(t)
		k, text := make1(t, s)
		for range 100 {
			_, guess := newText(time.Now())
			_, secret, _ := parse(guess)
			_, err := v.Verify(t.Context(), prefix+k.ID+"_"+secret)
			require.Equal(t, apierror.Unauthenticated, apierror.ReasonOf(err))
		}
		require.Len(t, m.reads, 1)
		v.writeUses(t.Context())
		require.Empty(t, m.uses)
		must.Get(v.Verify(t.Context(), text))(t)
		v.writeUses(t.Context())
		require.Equal(t, [][]string{{k.ID}}, m.uses)
	})
}

// TestVerify_WritesAUseOncePerMinute checks that a key in constant use costs one write a minute.
func TestVerify_WritesAUseOncePerMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s, v, log := newFixture(t)
		_, text := make1(t, s)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = v.Run(ctx) }()
		for range 300 {
			must.Get(v.Verify(t.Context(), text))(t)
			time.Sleep(time.Second)
		}
		synctest.Wait() // the last write may be due in this very second
		require.InDelta(t, 5, len(m.uses), 1)
		require.Empty(t, log.String())
	})
}

// TestVerify_RefusesMalformedTexts checks that texts in another form are refused without a read,
// and that no error contains them.
func TestVerify_RefusesMalformedTexts(t *testing.T) {
	m, s, v, _ := newFixture(t)
	_, text := make1(t, s)
	for _, bad := range []string{
		"", "sk_", "sk_live_1234", text + "0", text[:len(text)-1], strings.ToUpper(text),
		text[:10] + "é" + text[12:], strings.Replace(text[3:], "_", "-", 1),
		" " + text, text + "\n", strings.Replace(text, "_", "-", 2),
		strings.Repeat("sk_", 27) + "s",
	} {
		_, err := v.Verify(t.Context(), bad)
		require.Equal(t, apierror.Unauthenticated, apierror.ReasonOf(err), "%q", bad)
		if len(bad) > 3 {
			require.NotContains(t, err.Error(), bad)
		}
	}
	require.Empty(t, m.reads)
}

func FuzzVerify(f *testing.F) {
	_, text := newText(time.Now())
	f.Add(text)
	f.Add("sk__")
	f.Fuzz(func(t *testing.T, text string) {
		id, secret, ok := parse(text)
		require.Equal(t, ok, len(text) == textLength && text == prefix+id+"_"+secret &&
			ValidID(id) && inAlphabet(secret))
	})
}

// TestCreate_MakesRandomKeys checks the form of new keys, and that only the hash of the secret is
// stored.
func TestCreate_MakesRandomKeys(t *testing.T) {
	m, s, _, _ := newFixture(t)
	k, text := make1(t, s)
	require.Regexp(t, `^sk_[0-9a-v]{26}_[0-9a-v]{52}$`, text)
	require.True(t, strings.HasPrefix(text, k.Prefix()+"_"))
	_, other := make1(t, s)
	require.NotEqual(t, text[len(k.Prefix()):], other[len(k.Prefix()):])
	_, secret, _ := parse(text)
	stored := fmt.Sprintf("%+v %x", m.keys[k.ID], m.keys[k.ID].Hash)
	require.NotContains(t, stored, secret)
	require.Equal(t, []Scope{SalesRead, OrdersRead}, k.Scopes, "in the documented order")
	require.Equal(t, seckill.Actor{
		ID: "70", Role: seckill.Merchant, APIKey: seckill.APIKey{ID: k.ID, Name: "erp"},
	}, k.Actor())
	require.False(t, k.Allows(""))
	require.False(t, k.Allows(SalesWrite))
}

// TestCreate_RefusesBadFieldsOtherMerchantsAndTooManyKeys checks the bounds of a key's fields too.
func TestCreate_RefusesBadFieldsOtherMerchantsAndTooManyKeys(t *testing.T) {
	_, s, _, _ := newFixture(t)
	good := NewKey{MerchantID: "70", Name: "erp", Scopes: Scopes()}
	for _, c := range []struct {
		change func(*NewKey)
		reason apierror.Reason
	}{
		{func(n *NewKey) { n.Name = "" }, apierror.BadRequest},
		{func(n *NewKey) { n.Name = "   " }, apierror.BadRequest},
		{func(n *NewKey) { n.Name = "a\nb" }, apierror.BadRequest},
		{func(n *NewKey) { n.Name = strings.Repeat("é", maxName+1) }, apierror.BadRequest},
		{func(n *NewKey) { n.Scopes = nil }, apierror.BadRequest},
		{func(n *NewKey) { n.Scopes = []Scope{"*"} }, apierror.BadRequest},
		{func(n *NewKey) { n.Scopes = []Scope{SalesRead, SalesRead} }, apierror.BadRequest},
		{func(n *NewKey) { n.MerchantID = "" }, apierror.BadRequest},
		{func(n *NewKey) { n.MerchantID = "71" }, apierror.Forbidden},
	} {
		n := good
		c.change(&n)
		_, _, err := s.Create(t.Context(), merchant(), n)
		require.Equal(t, c.reason, apierror.ReasonOf(err), "%+v", n)
	}
	good.Name = strings.Repeat("é", maxName)
	for range maxKeys {
		_, _, err := s.Create(t.Context(), merchant(), good)
		require.NoError(t, err)
	}
	_, _, err := s.Create(t.Context(), merchant(), good)
	require.Equal(t, apierror.Conflict, apierror.ReasonOf(err))
}

// TestRevoke_RefusesUnknownKeysAndOtherMerchants checks List too, and malformed ids.
func TestRevoke_RefusesUnknownKeysAndOtherMerchants(t *testing.T) {
	_, s, _, _ := newFixture(t)
	k, _ := make1(t, s)
	unknown, _ := newText(time.Now())
	for _, id := range []string{unknown, "", "x"} {
		_, err := s.Revoke(t.Context(), merchant(), id)
		require.Equal(t, apierror.NotFound, apierror.ReasonOf(err))
	}
	other := seckill.Actor{ID: "71", Role: seckill.Merchant}
	_, err := s.Revoke(t.Context(), other, k.ID)
	require.Equal(t, apierror.Forbidden, apierror.ReasonOf(err))
	_, err = s.List(t.Context(), other, "70", "", 9)
	require.Equal(t, apierror.Forbidden, apierror.ReasonOf(err))
}

// TestKeys_HaveTheDatabasesTimes makes, uses and revokes a key on a host whose clock is an hour
// behind the database's.
func TestKeys_HaveTheDatabasesTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s, v, _ := newFixture(t)
		k, text := make1(t, s)
		must.Get(v.Verify(t.Context(), text))(t)
		v.writeUses(t.Context())
		k = must.Get(s.Revoke(t.Context(), merchant(), k.ID))(t)
		now := must.Get(m.Now(t.Context()))(t)
		for _, at := range []time.Time{k.CreatedAt, k.LastUsedAt, k.RevokedAt} {
			require.WithinDuration(t, now, at, time.Second)
		}
	})
}
