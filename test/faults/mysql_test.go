package faults

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/installation"
)

func mysqlHarms() []harm {
	return []harm{
		{name: "mysql-killed-twice", over: 10 * time.Second, do: func(t *testing.T, s *scene) {
			for range 2 {
				s.until(s.between(0.1, 0.4))
				primary := s.Primary(t)
				require.NoError(t, primary.Kill())
				s.lasts(time.Duration(s.between(0, float64(2*time.Second))))
				require.NoError(t, primary.Restart(t.Context()))
				s.until(s.between(0.5, 0.8))
			}
		}},
		{name: "mysql-paused", do: func(t *testing.T, s *scene) {
			s.until(s.between(0.1, 0.7))
			pause(t, s, s.Primary(t), 10*time.Second)
		}},
		{name: "mysql-read-only", rig: installation.Options{Plain: true}, do: func(t *testing.T, s *scene) {
			s.until(s.between(0.1, 0.7))
			s.SQLDo(t, "SET GLOBAL read_only = ON")
			s.lasts(5 * time.Second)
			s.SQLDo(t, "SET GLOBAL read_only = OFF")
		}},
		{name: "mysql-disk-full", rig: installation.Options{OwnSQL: true}, over: 20 * time.Second, crowd: true, do: fillDisk},
	}
}

// fillDisk leaves MySQL, of a group the primary, no room for 8 s. Where it cannot go on without, it ends, and is started again as an
// operator would once there is room.
func fillDisk(t *testing.T, s *scene) {
	t.Helper()
	s.until(s.between(0.1, 0.3))
	written, won := s.Facts(t, s.goods).Orders, s.won.Load()
	s.Disk.Fill(t)
	s.lasts(8 * time.Second)
	ended := !s.SQL.Running()
	more := s.won.Load() - won
	said := s.SQL.Log()
	s.Disk.Free(t)
	if ended {
		require.NoError(t, s.SQL.Restart(t.Context()))
	}
	t.Logf("what the server said of it:\n%s", said)
	t.Logf("%d orders when the disk was full, %d promised while it was, %d written right after; the server ended: %t",
		written, more, s.Facts(t, s.goods).Orders-written, ended)
	require.Positive(t, more, "a full disk of MySQL's stopped the API")
}
