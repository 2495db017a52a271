// Package servers runs real servers for tests, fault runs and benchmarks: redis-server, mariadbd,
// mysqld (one, or a group), rabbitmq-server and nginx, each private to its caller: own temporary
// directory, own free loopback ports, own log.
//
// There are two layers. The Start functions (StartRedis, StartRedisCluster, StartMariaDB,
// StartMySQL, StartRabbitMQ, StartNginx) take a context and a directory and return errors, so that
// a main function can use them. The functions named for the server (Redis, MariaDB, MySQL,
// RabbitMQ, Nginx) and Suite wrap them for tests: they fail the test where a server is missing,
// print its log where the test failed, and stop it at cleanup. Nothing here skips.
//
// Of servers that work together (RedisNodes) each is a handle of its own, and what they do together
// has methods beside: who is master of a key, a slot moved step by step, a failover, a node cut off
// from the others.
//
// A handle can kill its server (SIGKILL), pause and resume it (SIGSTOP, SIGCONT), restart it on the
// same port with the same data, or restart it with the data gone. Handles are safe for concurrent
// use; two restarts at once take turns.
//
// Life: a server ends with Stop (terminate, then kill) and at the latest with the process that
// started it. On Linux the kernel sees to that (PR_SET_PDEATHSIG), so a test binary that is killed
// with SIGKILL leaves no daemon either.
//
// Allowed imports: the standard library, go-sql-driver/mysql (to ask a SQL server whether it is
// ready) and goleak.
package servers
