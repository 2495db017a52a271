// Package servers runs real servers for tests, fault runs and benchmarks. The servers are
// redis-server, mariadbd, mysqld (single or a group), rabbitmq-server and nginx, an OpenID Connect
// provider and stripe-mock. Each server is private to its caller, with its own temporary directory,
// free loopback ports and log. A SQL server's data start as a copy of a template in the user's
// cache (sqltemplate.go).
//
// The package has two layers. The Start functions (StartRedis, StartMariaDB, StartMySQL,
// StartMySQLGroup, StartRabbitMQ, StartNginx) take a context and a directory and return errors.
// Main functions can therefore use them. The functions with a server's name (Redis, MariaDB, MySQL,
// RabbitMQ, Nginx) and Suite wrap them for tests. They fail the test if a server's program is
// missing, print its log if the test failed, and stop it at cleanup. They never skip a test.
//
// In a cluster (RedisNodes) each server has its own handle. The cluster's methods cover common
// operations: the master of a key, a slot move in steps, a failover, a partition.
//
// A handle can kill its server (SIGKILL), and pause and resume it (SIGSTOP, SIGCONT). It can
// restart it on the same port, with the same data or without data. Handles are safe for concurrent
// use, and concurrent restarts run one after the other.
//
// Life cycle: a server ends with Stop (terminate, then kill), or at the latest with the process
// that started it. On Linux the kernel ensures this (PR_SET_PDEATHSIG). Therefore even a test
// binary that ends with SIGKILL leaves no daemon.
//
// Allowed imports: the standard library, the clients of Redis and SQL, uuid, x/sync, testify, and
// the packages must and netfault.
package servers
