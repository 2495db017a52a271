package embedded

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"flashsale.dev/seckill/internal/testing/must"
)

// TestStart_StopsRedisWithoutADatabase checks that a database that cannot be opened leaves no
// running Redis, which would keep a goroutine.
func TestStart_StopsRedisWithoutADatabase(t *testing.T) {
	defer goleak.VerifyNone(t)
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "seckill.db"), 0o700))
	_, err := Start(t.Context(), dir, 0, slog.New(slog.DiscardHandler))
	require.Error(t, err)
}

// lostAnswers is a hook that loses the answers of commands, which Redis has run.
type lostAnswers struct{ lost atomic.Bool }

func (l *lostAnswers) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if err == nil && l.lost.Load() {
			err = errors.New("the answer is lost")
			cmd.SetErr(err)
		}
		return err
	}
}

func (*lostAnswers) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*lostAnswers) ProcessPipelineHook(
	next redis.ProcessPipelineHook,
) redis.ProcessPipelineHook {
	return next
}

// TestStart_LockOfALostAnswerEnds checks that a rebuild lock whose answer got lost ends here, too:
// no key of this Redis expires. The sale would not be rebuilt until the next start.
func TestStart_LockOfALostAnswerEnds(t *testing.T) {
	s := must.Get(Start(t.Context(), t.TempDir(), 0, slog.New(slog.DiscardHandler)))(t)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	answers := &lostAnswers{}
	s.Redis.AddHook(answers)
	lock := func() (func(), bool, error) {
		return s.RedisStore.LockRebuild(t.Context(), 1, 100*time.Millisecond)
	}
	unlock, ok, err := lock() // the server knows the script from now on
	require.NoError(t, err)
	require.True(t, ok)
	_, again, err := lock()
	require.NoError(t, err)
	require.False(t, again)
	unlock()
	answers.lost.Store(true)
	_, _, err = lock()
	require.Error(t, err)
	answers.lost.Store(false)
	require.Eventually(t, func() bool {
		unlock, ok, err = lock()
		return err == nil && ok
	}, 10*time.Second, 20*time.Millisecond)
	unlock()
}
