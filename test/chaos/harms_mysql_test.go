package chaos

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/test/rig"
)

func mysqlHarms() []harm {
	return []harm{
		{name: "mysql-killed-twice", over: 10 * time.Second, do: func(t *testing.T, s *scene) {
			for range 2 {
				s.until(s.between(0.1, 0.4))
				require.NoError(t, s.SQL.Kill())
				s.lasts(time.Duration(s.between(0, float64(2*time.Second))))
				require.NoError(t, s.SQL.Restart(t.Context()))
				s.until(s.between(0.5, 0.8))
			}
		}},
		{name: "mysql-paused", do: func(t *testing.T, s *scene) {
			s.until(s.between(0.1, 0.7))
			pause(t, s, s.SQL, 10*time.Second)
		}},
		{name: "mysql-read-only", rig: rig.Options{Plain: true}, do: func(t *testing.T, s *scene) {
			s.until(s.between(0.1, 0.7))
			s.SQLDo(t, "SET GLOBAL read_only = ON")
			s.lasts(5 * time.Second)
			s.SQLDo(t, "SET GLOBAL read_only = OFF")
		}},
	}
}
