package metrics

import (
	"database/sql"

	"github.com/prometheus/client_golang/prometheus"
)

// Pools are a program's connections to the servers behind it.
type Pools struct {
	Redis   func() RedisPool
	SQL     func() sql.DBStats
	QueueUp func() bool // RabbitMQ takes messages
}

// RedisPool is a pool of connections to Redis.
type RedisPool struct {
	Connections, Idle uint32
	New, Timeouts     uint32 // since the program began
}

// Pools registers the metrics of the pools; they are read when they are asked for.
func (r *Registry) Pools(p Pools) {
	r.read("gauge", "redis_pool_connections", "Connections to Redis, in use or idle.", func() float64 { return float64(p.Redis().Connections) })
	r.read("gauge", "redis_pool_idle_connections", "Connections to Redis that are idle.", func() float64 { return float64(p.Redis().Idle) })
	r.read("counter", "redis_pool_new_total", "Calls for which a connection to Redis had to be made.", func() float64 { return float64(p.Redis().New) })
	r.read("counter", "redis_pool_timeouts_total", "Calls that got no connection to Redis in time.", func() float64 { return float64(p.Redis().Timeouts) })
	r.read("gauge", "sql_pool_connections", "Connections to MySQL, in use or idle.", func() float64 { return float64(p.SQL().OpenConnections) })
	r.read("gauge", "sql_pool_used_connections", "Connections to MySQL that are in use.", func() float64 { return float64(p.SQL().InUse) })
	r.read("gauge", "sql_pool_max_connections", "Connections to MySQL that there may be.", func() float64 { return float64(p.SQL().MaxOpenConnections) })
	r.read("counter", "sql_pool_waits_total", "Calls that had to wait for a connection to MySQL.", func() float64 { return float64(p.SQL().WaitCount) })
	r.read("counter", "sql_pool_wait_seconds_total", "Time that calls have waited for a connection to MySQL.", func() float64 { return p.SQL().WaitDuration.Seconds() })
	r.read("gauge", "publisher_up", "1 where RabbitMQ takes messages.", func() float64 { return truth(p.QueueUp()) })
}

// read registers a metric that is a function.
func (r *Registry) read(kind, name, help string, value func() float64) {
	if kind == "counter" {
		r.add(kind, name, help, nil, prometheus.NewCounterFunc(prometheus.CounterOpts{Name: prefix + name, Help: help}, value))
		return
	}
	r.add(kind, name, help, nil, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: prefix + name, Help: help}, value))
}
