package servers

import (
	"database/sql"

	"flashsale.dev/seckill/internal/obs/prom"
)

// Pools are the connections, for the metrics.
func (s *Servers) Pools() prom.Pools {
	return prom.Pools{
		Redis: func() prom.RedisPool {
			pool := s.Redis.PoolStats()
			return prom.RedisPool{Connections: pool.TotalConns, Idle: pool.IdleConns, New: pool.Misses, Timeouts: pool.Timeouts}
		},
		SQL:     func() sql.DBStats { return s.Store.Stats() },
		QueueUp: s.Queue.Up,
	}
}
