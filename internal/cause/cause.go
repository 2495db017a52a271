// Package cause names why a server is not usable, in a few words. They contain no addresses, users
// or secrets, so a public port may show them. The package knows the errors of Redis, MySQL and the
// network; other packages add the cause to theirs.
package cause

import (
	"crypto/tls"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"slices"
	"syscall"

	"github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"
)

// The causes.
const (
	Unreachable = "unreachable"
	Silent      = "no answer in time"
	Refused     = "refuses the user or the password"
	NoDatabase  = "no such database, or no right to it"
	NoVHost     = "refuses the virtual host"
	NotMigrated = "not migrated"
	ReadOnly    = "read-only"
	Denied      = "denies the user a permission"
	Statements  = "its binlog_format must be ROW or MIXED"
	Untrusted   = "its certificate is not valid"
	NoTLS       = "has no TLS"
	NeedsTLS    = "requires TLS"
	Loading     = "it loads its data: wait"
	Crowded     = "has too many connections"
	Full        = "it is full: raise maxmemory"
	Unsaved     = "it can't save its data: free space on its disk"
	Replicas    = "it has fewer replicas than min-replicas-to-write"
	NoCluster   = "it is no Redis Cluster: name one address in SECKILL_REDIS_ADDRS"
	NoFiles     = "this program can open no more files: raise its limit (ulimit -n)"
	Other       = "fails: see the log"
)

// withCause is an error with its cause.
type withCause struct {
	error
	cause string
}

// Unwrap returns the error.
func (w *withCause) Unwrap() error { return w.error }

// Cause returns the cause.
func (w *withCause) Cause() string { return w.cause }

// With adds a cause to an error.
func With(err error, cause string) error { return &withCause{err, cause} }

// causer is an error with a cause.
type causer interface {
	error
	Cause() string
}

// Of returns the cause of an error; "" for nil.
func Of(err error) string {
	if err == nil {
		return ""
	}
	if known, ok := errors.AsType[causer](err); ok {
		return known.Cause()
	}
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return ofMySQL(e.Number)
	}
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	_, noTLS := errors.AsType[tls.RecordHeaderError](err)
	network, ofNetwork := errors.AsType[*net.OpError](err)
	timeout, _ := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE):
		return NoFiles
	case refusedByRedis(err):
		return Refused
	case redis.HasErrorPrefix(err, "READONLY"):
		return ReadOnly
	case redis.HasErrorPrefix(err, "LOADING"):
		return Loading
	case redis.HasErrorPrefix(err, "NOPERM"):
		return Denied
	case redis.HasErrorPrefix(err, "OOM"):
		return Full
	case redis.HasErrorPrefix(err, "MISCONF"):
		return Unsaved
	case redis.HasErrorPrefix(err, "NOREPLICAS"):
		return Replicas
	case redis.HasErrorPrefix(err, "max number of clients"):
		return Crowded
	case redis.HasErrorPrefix(err, "This instance has cluster support disabled"):
		return NoCluster
	case untrusted:
		return Untrusted
	case noTLS || errors.Is(err, mysql.ErrNoTLS):
		return NoTLS
	case timeout != nil && timeout.Timeout() || errors.Is(err, redis.ErrPoolTimeout):
		return Silent
	case ofNetwork && network.Op == "remote error": // an alert of TLS: it answers
		return Other
	case ofNetwork || errors.Is(err, net.ErrClosed) || errors.Is(err, io.EOF) ||
		errors.Is(err, driver.ErrBadConn) || errors.Is(err, mysql.ErrInvalidConn):
		return Unreachable
	}
	return Other
}

// ofMySQL returns the cause of an error of MySQL or MariaDB by its number.
func ofMySQL(number uint16) string {
	switch number {
	case 1045, 1698:
		return Refused
	case 1040, 1203, 1226:
		return Crowded
	case 1044, 1049: // a user who may not know which databases exist gets 1044
		return NoDatabase
	case 1054, 1146:
		return NotMigrated
	case 1290, 1792, 1836:
		return ReadOnly
	case 1142, 1143:
		return Denied
	case 1665:
		return Statements
	case 3159:
		return NeedsTLS
	}
	return Other
}

// refusedByRedis reports whether Redis refuses the user or the password, or requires one. Redis
// also refuses a password where it has none.
func refusedByRedis(err error) bool {
	return slices.ContainsFunc([]string{
		"WRONGPASS", "NOAUTH", "invalid password", "AUTH <password> called", "Client sent AUTH",
	}, func(prefix string) bool { return redis.HasErrorPrefix(err, prefix) })
}

// RefusedBy returns the server that refuses the user or the password: "MySQL", "Redis", "RabbitMQ",
// or "" if the error has another cause.
func RefusedBy(err error) string {
	_, sql := errors.AsType[*mysql.MySQLError](err)
	switch {
	case err == nil || Of(err) != Refused:
		return ""
	case sql:
		return "MySQL"
	case refusedByRedis(err):
		return "Redis"
	}
	return "RabbitMQ"
}
