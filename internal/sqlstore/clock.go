package sqlstore

import (
	"context"
	"sync/atomic"
	"time"

	"gorm.io/gorm"
)

// clockLife is how long a reading of the server's clock is used. Hosts' clocks drift by less than a
// millisecond in that time; a failover, or a step of the server's clock, is noticed after it.
const clockLife = 10 * time.Second

// clockStep: a row whose time is later than the server's clock by more than this was written before
// the clock was set back. Without that rule the row would wait until the clock reaches its time.
const clockStep = 10 * time.Second

// notLater selects the rows whose time in a column is at a moment or before it. It also selects
// those that are later by more than clockStep and longest: the clock was set back since. longest is
// how long rows of the column wait on purpose.
func notLater(q *gorm.DB, column string, moment time.Time, longest time.Duration) *gorm.DB {
	return q.Where("("+column+" <= ? OR "+column+" > ?)", moment.UnixMilli(),
		moment.Add(longest+clockStep).UnixMilli())
}

// serverClock is the clock of a MySQL server, which the zero value has not read yet.
type serverClock struct{ last atomic.Pointer[reading] }

// reading is the server's time when this process received it. The monotonic clock adds the time
// since, so that a step of this host's clock changes nothing.
type reading struct {
	server, received time.Time
	wall             time.Time // received, without the monotonic clock
}

func newReading(server time.Time) *reading {
	now := time.Now()
	return &reading{server: server, received: now, wall: now.Round(0)}
}

// fresh reports whether the reading can be used. Linux's monotonic clock stands still while the
// host is suspended: the wall clock shows that. A step of the wall clock costs one more reading.
func (r *reading) fresh() bool {
	return r != nil && time.Since(r.received) < clockLife &&
		time.Since(r.wall).Abs() < clockLife
}

func (r *reading) now() time.Time { return r.server.Add(time.Since(r.received)) }

// Now returns the time of the database's server. It may be behind by the time of an answer. SQLite
// has this host's clock.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	if s.clock == nil {
		return time.Now().UTC(), nil
	}
	if last := s.clock.last.Load(); last.fresh() {
		return last.now(), nil
	}
	read, err := readClock(func() (server time.Time, err error) {
		var micros int64
		const question = "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3))"
		err = s.read(ctx).Raw(question).Scan(&micros).Error
		return time.UnixMicro(micros).UTC(), err
	})
	if err != nil {
		return time.Time{}, wrapError("read the server's clock", err)
	}
	s.clock.last.Store(read)
	return read.now(), nil
}

// readClock returns a reading of the time that ask returns. It asks again if this process slept
// meanwhile. The time would be behind by that sleep, and orders written with a payBy that is over.
func readClock(ask func() (time.Time, error)) (*reading, error) {
	for {
		asked := newReading(time.Time{})
		server, err := ask()
		if err != nil || asked.fresh() {
			return newReading(server), err
		}
	}
}
