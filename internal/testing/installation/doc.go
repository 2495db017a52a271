// Package installation starts a whole installation on loopback for tests. Package servers provides
// a private Redis, MariaDB (or MySQL) and RabbitMQ. The project's own programs run as separate
// processes. A test can kill, pause and restart each of them during a rush.
package installation
