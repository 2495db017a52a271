package connect

import (
	"database/sql"

	"flashsale.dev/seckill/internal/metrics"
)

// Pools are the connections, for the metrics.
func (s *Servers) Pools() metrics.Pools {
	return metrics.Pools{
		Redis: func() metrics.RedisPool {
			pool := s.Redis.PoolStats()
			return metrics.RedisPool{Connections: pool.TotalConns, Idle: pool.IdleConns, New: pool.Misses, Timeouts: pool.Timeouts}
		},
		SQL:     func() sql.DBStats { return s.Store.Stats() },
		QueueUp: s.Queue.Up,
	}
}
