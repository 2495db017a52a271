package metrics

import (
	"database/sql"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/redis/go-redis/v9"
)

// Connections registers a program's connections to Redis, MySQL and RabbitMQ. down returns nil
// while RabbitMQ accepts messages. Each scrape calls the functions, which read existing counts of
// the pools, so that requests cost nothing more.
func (r *Registry) Connections(pool func() *redis.PoolStats, db *sql.DB, down func() error) {
	r.RedisPool(pool)
	r.gaugeFunc("publisher_up", "1 while RabbitMQ accepts messages.",
		func() float64 { return oneIf(down() == nil) })
	r.reg.MustRegister(collectors.NewDBStatsCollector(db, "mysql")) // go_sql_*
}

// RedisPool registers a program's connections to Redis. The client keeps those of its pipelines in
// a pool of their own. It has no timeouts: a pipeline that finds it full uses the other pool.
func (r *Registry) RedisPool(client func() *redis.PoolStats) {
	pool := func() redis.PoolStats {
		sum := *client()
		if p := sum.PipelineStats; p != nil {
			sum.TotalConns, sum.IdleConns = sum.TotalConns+p.TotalConns, sum.IdleConns+p.IdleConns
			sum.Misses += p.Misses
		}
		return sum
	}
	r.gaugeFunc("redis_pool_connections", "Connections to Redis, in use or idle.",
		func() float64 { return float64(pool().TotalConns) })
	r.gaugeFunc("redis_pool_idle_connections", "Idle connections to Redis.",
		func() float64 { return float64(pool().IdleConns) })
	r.counterFunc("redis_pool_misses_total", "Calls that had to open a connection to Redis.",
		func() float64 { return float64(pool().Misses) })
	r.counterFunc("redis_pool_timeouts_total", "Calls that got no connection to Redis in time.",
		func() float64 { return float64(pool().Timeouts) })
}

// gaugeFunc registers a gauge whose value is computed at each scrape.
func (r *Registry) gaugeFunc(name, help string, value func() float64) {
	opts := prometheus.GaugeOpts{Name: prefix + name, Help: help}
	r.add("gauge", name, help, nil, prometheus.NewGaugeFunc(opts, value))
}

// counterFunc registers a counter whose value is read at each scrape.
func (r *Registry) counterFunc(name, help string, value func() float64) {
	opts := prometheus.CounterOpts{Name: prefix + name, Help: help}
	r.add("counter", name, help, nil, prometheus.NewCounterFunc(opts, value))
}
