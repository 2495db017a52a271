// Package installation puts a whole installation up on loopback for tests: a private Redis, MariaDB
// (or MySQL) and RabbitMQ from package servers, and the project's own programs as processes of
// their own, each of which can be killed, paused and started again while buyers rush.
package installation
