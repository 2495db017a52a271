package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/go-sql-driver/mysql"

	"flashsale.dev/seckill/internal/cause"
	"flashsale.dev/seckill/internal/sqlstore"
)

// commandDenied is MySQL's error number of a right that a user lacks on a table.
const commandDenied = 1142

// withRemedy adds to an error what its user can do. For a refused or failed connection these are
// the settings to correct: the operating system's error has an address alone, and a user sets
// variables. For a missing table or column it is the command that makes them. It returns
// other errors unchanged.
func withRemedy(err error, flags []*kong.Flag) error {
	if sqlstore.IsNotMigrated(err) {
		return fmt.Errorf("%w\nthe database lacks a migration of this program: "+
			"run seckillctl migrate", err)
	}
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok && e.Number == commandDenied {
		return fmt.Errorf("%w\nthe user of SECKILL_MYSQL_DSN (--mysql-dsn) lacks this right: "+
			"GRANT ALL on the database, or name another user", err)
	}
	all := strings.Join(settingsOf("", flags), " or ")
	switch known := cause.Of(err); known {
	case cause.Refused:
		return withCredentials(err, cause.RefusedBy(err), flags)
	case cause.NoDatabase:
		return fmt.Errorf("%w\nMySQL at %s has no such database, or its user has no right to it: "+
			"correct the end of SECKILL_MYSQL_DSN (--mysql-dsn), or GRANT ALL on the database", err,
			sqlstore.AddrOf(targetOf("mysql-dsn", flags)))
	case cause.NoVHost:
		return fmt.Errorf("%w\nRabbitMQ %s: correct the end of SECKILL_AMQP_URL (--amqp-url)", err,
			known)
	case cause.Untrusted:
		return fmt.Errorf("%w\nthe certificate must be for the host in %s, and of an authority "+
			"that this machine trusts (SSL_CERT_FILE names another)", err, all)
	case cause.NoTLS, cause.NeedsTLS:
		return fmt.Errorf("%w\nthe server %s: correct %s", err, known, all)
	}
	addr := unanswered(err, flags)
	settings := settingsOf(addr, flags)
	if addr == "" || len(settings) == 0 {
		return err
	}
	hint := standaloneHint(filepath.Join("data", "seckill.db"))
	switch {
	case errors.Is(err, io.EOF): // a Redis that requires TLS ends the connection
		hint = ", or set SECKILL_REDIS_TLS (--redis-tls) if it requires TLS" + hint
	case errors.Is(err, context.DeadlineExceeded) && targetOf("redis-tls", flags) == "true":
		// A Redis without TLS waits for the rest of the greeting.
		hint = ", or unset SECKILL_REDIS_TLS (--redis-tls) if it has no TLS" + hint
	}
	return fmt.Errorf("%w\nno server answers at %s: start it, or set %s to another%s", err, addr,
		strings.Join(settings, " or "), hint)
}

// unanswered returns the host:port that did not answer. It returns a host's name that has no
// address, such as that of a container which does not run. If a server accepts the connection and
// then is silent, the driver's error has no address, so unanswered returns that of the setting. For
// other errors it returns "".
func unanswered(err error, flags []*kong.Flag) string {
	failed, ok := errors.AsType[*net.OpError](err)
	unknown, named := errors.AsType[*net.DNSError](err)
	switch {
	case named:
		return unknown.Name
	case ok && failed.Addr != nil:
		return failed.Addr.String()
	case errors.Is(err, mysql.ErrInvalidConn):
		return sqlstore.AddrOf(targetOf("mysql-dsn", flags))
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, io.EOF):
		return targetOf("redis-addrs", flags)
	case errors.Is(err, context.DeadlineExceeded): // the error begins with the address
		if addr := targetOf("redis-addrs", flags); strings.Contains(err.Error(), addr+":") {
			return addr
		}
	}
	return ""
}

// targetOf returns a flag's value, "" if the command has no such flag.
func targetOf(name string, flags []*kong.Flag) string {
	for _, f := range flags {
		if f.Name == name {
			return fmt.Sprint(f.Target.Interface())
		}
	}
	return ""
}

// withCredentials adds the settings with the user and the password to an error of a server that
// refuses them.
func withCredentials(err error, server string, flags []*kong.Flag) error {
	names := map[string][]string{
		"Redis": {"redis-username", "redis-password"}, "MySQL": {"mysql-dsn"},
		"RabbitMQ": {"amqp-url"},
	}[server]
	var settings []string
	for _, f := range flags {
		if slices.Contains(names, f.Name) {
			settings = append(settings, settingOf(f))
		}
		switch {
		case f.Name == "redis-addrs" && server == "Redis":
			server += " at " + f.Target.String()
		case f.Name == "mysql-dsn" && server == "MySQL":
			server += " at " + sqlstore.AddrOf(f.Target.String())
		}
	}
	return fmt.Errorf("%w\n%s refuses the user or the password: correct %s", err, server,
		strings.Join(settings, " or "))
}

// settingOf returns a flag as "VARIABLE (--flag)".
func settingOf(f *kong.Flag) string {
	return fmt.Sprintf("%s (--%s)", strings.Join(f.Envs, ", "), f.Name)
}

// settingsOf returns the settings that contain addr, a host:port or a host, as "VARIABLE (--flag)".
// It compares only the port of a host:port, because errors have the IP address of a host's name. If
// no setting fits, as with an address that Sentinel returned, it returns the settings of all
// servers.
func settingsOf(addr string, flags []*kong.Flag) []string {
	part := addr + ":"
	if _, port, err := net.SplitHostPort(addr); err == nil {
		part = ":" + port
	}
	var all, fitting []string
	for _, f := range flags {
		if !slices.Contains([]string{"mysql-dsn", "redis-addrs", "amqp-url"}, f.Name) {
			continue
		}
		setting := settingOf(f)
		all = append(all, setting)
		if target := f.Target.String(); target == addr || strings.Contains(target, part) {
			fitting = append(fitting, setting)
		}
	}
	if len(fitting) > 0 {
		return fitting
	}
	return all
}

// standaloneHint says how to reach the data of a standalone if its database file exists, else "".
// No command uses the file by itself: a shell in that folder may operate another installation.
func standaloneHint(file string) string {
	if _, err := os.Stat(file); err != nil {
		return ""
	}
	return fmt.Sprintf("\n%[1]s belongs to a standalone: --mysql-dsn sqlite:%[1]s reads it. Its "+
		"Redis is inside its process: the console and GET /admin/sales/GOODS/ledger have its ledgers",
		file)
}
