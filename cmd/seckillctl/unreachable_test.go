package main

import (
	"bufio"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/auth"
	"flashsale.dev/seckill/internal/cause"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
)

func TestUnreachableServer_IsNamedWithItsSetting(t *testing.T) {
	t.Chdir(t.TempDir())
	closed := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	addr := closed.Addr().String()
	require.NoError(t, closed.Close())
	ledger := func() error {
		return run(t.Context(), []string{"ledger", "7", "--mysql-dsn", "a:b@tcp(" + addr + ")/c"},
			nil, io.Discard, io.Discard)
	}
	err := ledger()
	require.ErrorContains(t, err, "no server answers at "+addr)
	require.ErrorContains(t, err, "set SECKILL_MYSQL_DSN (--mysql-dsn) to another")
	require.NotContains(t, err.Error(), "SECKILL_REDIS_ADDRS")
	require.NotContains(t, err.Error(), "standalone")

	require.NoError(t, os.Mkdir("data", 0o700))
	require.NoError(t, os.WriteFile(filepath.Join("data", "seckill.db"), nil, 0o600))
	require.ErrorContains(t, ledger(), "--mysql-dsn sqlite:data/seckill.db reads it")
}

// TestUnknownHost_IsNamedWithItsSetting uses a name that never resolves (RFC 6761).
func TestUnknownHost_IsNamedWithItsSetting(t *testing.T) {
	err := run(t.Context(), []string{
		"ledger", "7", "--mysql-dsn", "a:b@tcp(mysql.invalid:3306)/c",
	}, nil, io.Discard, io.Discard)
	require.ErrorContains(t, err, "no server answers at mysql.invalid: start it, or set "+
		"SECKILL_MYSQL_DSN (--mysql-dsn) to another")
}

// TestSilentServer_IsNamedWithItsSetting uses a server that accepts connections and never answers.
func TestSilentServer_IsNamedWithItsSetting(t *testing.T) {
	silent := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer silent.Close()
	addr := silent.Addr().String()
	ctl := func(args ...string) error { return run(t.Context(), args, nil, io.Discard, io.Discard) }
	named := func(err error, setting string) {
		require.ErrorContains(t, err, addr)
		require.ErrorContains(t, err, ": start it, or set "+setting+" to another")
	}
	dsn := "a:b@tcp(" + addr + ")/c"
	named(ctl("migrate", "--wait", "10ms", "--mysql-dsn", dsn), "SECKILL_MYSQL_DSN (--mysql-dsn)")
	named(ctl("dead-letters", "list", "--mysql-dsn", dsn+"?readTimeout=10ms"),
		"SECKILL_MYSQL_DSN (--mysql-dsn)")
	named(ctl("limiter", "get", "randomPath", "7", "--redis-addrs", addr),
		"SECKILL_REDIS_ADDRS (--redis-addrs)")
	named(ctl("limiter", "get", "randomPath", "7", "--redis-addrs", addr+","+addr),
		"SECKILL_REDIS_ADDRS (--redis-addrs)")
}

// TestPlainText_ToTLSIsNamedWithItsSetting uses a server that ends connections without TLS, as
// Redis does.
func TestPlainText_ToTLSIsNamedWithItsSetting(t *testing.T) {
	server := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer server.Close()
	go func() {
		for {
			conn, err := server.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 1000))
			_ = conn.Close()
		}
	}()
	addr := server.Addr().String()
	err := run(t.Context(),
		[]string{"limiter", "get", "randomPath", "7", "--redis-addrs", addr}, nil, io.Discard,
		io.Discard)
	require.ErrorContains(t, err, "no server answers at "+addr)
	require.ErrorContains(t, err, "SECKILL_REDIS_TLS (--redis-tls)")
}

// TestTLS_ToPlainRedisIsNamedWithItsSetting checks a Redis that takes TLS' greeting for the begin
// of a command, and waits for the rest.
func TestTLS_ToPlainRedisIsNamedWithItsSetting(t *testing.T) {
	addr := servers.Redis(t).Addr()
	err := run(t.Context(), []string{
		"limiter", "get", "randomPath", "7", "--redis-tls", "--redis-addrs", addr,
	}, nil, io.Discard, io.Discard)
	require.ErrorContains(t, err, "no server answers at "+addr)
	require.ErrorContains(t, err, "unset SECKILL_REDIS_TLS (--redis-tls) if it has no TLS")
}

// TestForeignCertificate_IsNamedWithItsSetting uses a certificate that this machine does not trust.
func TestForeignCertificate_IsNamedWithItsSetting(t *testing.T) {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	var err error
	require.Eventually(t, func() bool { // a busy machine may miss the deadline of the call
		err = run(t.Context(), []string{
			"limiter", "get", "randomPath", "7", "--redis-tls", "--redis-addrs",
			server.Listener.Addr().String(),
		}, nil, io.Discard, io.Discard)
		return err != nil && strings.Contains(err.Error(),
			"for the host in SECKILL_REDIS_ADDRS (--redis-addrs), and")
	}, time.Minute, 10*time.Millisecond)
	require.ErrorContains(t, err, "SSL_CERT_FILE")
}

// TestMigrate_UserWithoutCreateGetsTheRemedy migrates as a user who may only read.
func TestMigrate_UserWithoutCreateGetsTheRemedy(t *testing.T) {
	cfg := must.Get(mysql.ParseDSN(servers.MariaDB(t).NewDatabase(t)))(t)
	db := must.Get(sql.Open("mysql", cfg.FormatDSN()))(t)
	defer db.Close()
	must.Get(db.ExecContext(t.Context(), "CREATE USER 'reader'@'127.0.0.1' IDENTIFIED BY 'r'"))(t)
	must.Get(db.ExecContext(t.Context(),
		"GRANT SELECT ON "+cfg.DBName+".* TO 'reader'@'127.0.0.1'"))(t)
	cfg.User, cfg.Passwd = "reader", "r"
	err := run(t.Context(), []string{"migrate", "--mysql-dsn", cfg.FormatDSN()}, nil, io.Discard,
		io.Discard)
	require.ErrorContains(t, err, "the user of SECKILL_MYSQL_DSN (--mysql-dsn) lacks this right")
}

// TestWrongDatabase_IsNamedWithTheRemedy names a database that does not exist. Only root reads
// that; a user of another database reads that it has no right.
func TestWrongDatabase_IsNamedWithTheRemedy(t *testing.T) {
	cfg := must.Get(mysql.ParseDSN(servers.MariaDB(t).NewDatabase(t)))(t)
	db := must.Get(sql.Open("mysql", cfg.FormatDSN()))(t)
	defer db.Close()
	must.Get(db.ExecContext(t.Context(), "CREATE USER 'owner'@'127.0.0.1' IDENTIFIED BY 'o'"))(t)
	must.Get(db.ExecContext(t.Context(),
		"GRANT ALL ON "+cfg.DBName+".* TO 'owner'@'127.0.0.1'"))(t)
	cfg.DBName = "other"
	root := cfg.FormatDSN()
	cfg.User, cfg.Passwd = "owner", "o"
	for _, dsn := range []string{root, cfg.FormatDSN()} {
		err := run(t.Context(), []string{"migrate", "--wait", "1s", "--mysql-dsn", dsn}, nil,
			io.Discard, io.Discard)
		require.ErrorContains(t, err,
			"MySQL at "+cfg.Addr+" has no such database, or its user has "+
				"no right to it: correct the end of SECKILL_MYSQL_DSN (--mysql-dsn)")
	}
}

// TestMigrate_WaitForTheLockIsReported holds the lock as another migration does.
func TestMigrate_WaitForTheLockIsReported(t *testing.T) {
	dsn := servers.MariaDB(t).NewDatabase(t)
	db := must.Get(sql.Open("mysql", dsn))(t)
	defer db.Close()
	conn := must.Get(db.Conn(t.Context()))(t)
	defer conn.Close()
	var held bool
	var id int64
	require.NoError(t, conn.QueryRowContext(t.Context(), `SELECT GET_LOCK(CONCAT('seckill-migrate-',
		LEFT(SHA2(DATABASE(), 256), 32)), 1), CONNECTION_ID()`).Scan(&held, &id))
	require.True(t, held)
	read, write := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- run(t.Context(), []string{"migrate", "--mysql-dsn", dsn}, nil, io.Discard, write)
	}()
	line := must.Get(bufio.NewReader(read).ReadString('\n'))(t)
	require.Contains(t, line, fmt.Sprintf("waiting for connection %d ", id))
	must.Get(conn.ExecContext(t.Context(), "DO RELEASE_ALL_LOCKS()"))(t)
	require.NoError(t, <-ended)
}

func TestRedisAddrs_WrongOneIsNamedWithoutItsPassword(t *testing.T) {
	for _, addr := range []string{
		"redis://:hush@127.0.0.1:6379", ":hush@127.0.0.1:6379", "h:1,localhost", "::1:6379",
	} {
		err := run(t.Context(), []string{"ledger", "7", "--redis-addrs", addr}, nil, io.Discard,
			io.Discard)
		require.ErrorContains(t, err, "SECKILL_REDIS_ADDRS (--redis-addrs): address ", addr)
		require.NotContains(t, err.Error(), "hush")
		var exit *exitError
		require.ErrorAs(t, err, &exit)
		require.Equal(t, codeUsage, exit.ExitCode())
	}
}

// TestVariable_SpacesAroundItDoNotCount reads the line breaks of a file, as the programs do. A
// password keeps them.
func TestVariable_SpacesAroundItDoNotCount(t *testing.T) {
	t.Setenv("SECKILL_MYSQL_DSN", "a:b@tcp(127.0.0.1:1)/c")
	t.Setenv("SECKILL_REDIS_PASSWORD", "p\n")
	for name, value := range map[string]string{
		"SECKILL_PAYMENT_TIMEOUT": "15m\r", "SECKILL_REDIS_TLS": " false",
		"SECKILL_ORDER_SHARDS": " ",
	} {
		t.Setenv(name, value)
	}
	err := run(t.Context(), []string{"rebuild", "7"}, nil, io.Discard, io.Discard)
	require.ErrorContains(t, err, "no server answers at 127.0.0.1:1")
	require.Equal(t, "p\n", os.Getenv("SECKILL_REDIS_PASSWORD"))
}

// TestEmptyVariable_HasItsDefault asks for a sale that does not exist, which needs no Redis.
func TestEmptyVariable_HasItsDefault(t *testing.T) {
	for _, name := range []string{
		"SECKILL_REDIS_ADDRS", "SECKILL_REDIS_WAIT_REPLICAS", "SECKILL_REDIS_TLS",
	} {
		t.Setenv(name, "")
	}
	dsn := "sqlite:" + filepath.Join(t.TempDir(), "s.db")
	require.NoError(t, run(t.Context(), []string{"migrate", "--mysql-dsn", dsn}, nil, io.Discard,
		io.Discard))
	err := run(t.Context(), []string{"ledger", "7", "--mysql-dsn", dsn}, nil, io.Discard,
		io.Discard)
	var exit *exitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, codeRefused, exit.ExitCode(), "there is no such sale: %v", err)
}

func TestLedger_DatabaseWithoutMigrationsNamesTheCommand(t *testing.T) {
	file := filepath.Join(t.TempDir(), "seckill.db")
	dsn := "sqlite:" + file
	command := func(args ...string) error {
		return run(t.Context(), append(args, "--mysql-dsn", dsn), nil, io.Discard, io.Discard)
	}
	require.ErrorContains(t, command("ledger", "7"), "there is no file "+file)
	require.NoFileExists(t, file)
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.ErrorContains(t, command("ledger", "7"), "run seckillctl migrate")
	require.NoError(t, command("migrate"))
	require.NotContains(t, command("ledger", "7").Error(), "migrate")
}

func TestDeadLetters_DamagedDatabaseIsNamedWithTheRemedy(t *testing.T) {
	file := filepath.Join(t.TempDir(), "seckill.db")
	require.NoError(t, os.WriteFile(file, []byte(strings.Repeat("no database ", 1000)), 0o600))
	err := run(t.Context(), []string{"dead-letters", "list", "--mysql-dsn", "sqlite:" + file}, nil,
		io.Discard, io.Discard)
	require.ErrorContains(t, err, "the database "+file+" is damaged: restore it from a backup")
}

func TestToken_UsesTheSecretOfAStandalone(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("SECKILL_JWT_SECRET", "")
	var out strings.Builder
	token := func() error {
		return run(t.Context(), []string{"token", "--sub", "1"}, nil, &out, io.Discard)
	}
	require.ErrorContains(t, token(), "set SECKILL_JWT_SECRET (--secret)")

	require.NoError(t, os.Mkdir("data", 0o700))
	file := filepath.Join("data", "jwt-secret")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.ErrorContains(t, token(), file+" is empty")

	require.NoError(t, os.WriteFile(file, []byte(strings.Repeat("s", 32)), 0o600))
	require.NoError(t, token())
	require.Equal(t, 2, strings.Count(out.String(), "."), "a JWT has three parts")

	out.Reset()
	require.NoError(t, os.WriteFile(file, []byte(strings.Repeat("s", 32)+"\n"), 0o600))
	require.NoError(t, token())
	_, err := must.Get(auth.New([]byte(strings.Repeat("s", 32)), 0, time.Now))(t).
		Verify(strings.TrimSpace(out.String()))
	require.NoError(t, err, "a standalone ignores the line break of its file, too")
}

func TestToken_WrongValueIsNamedAsAWrongCommandLine(t *testing.T) {
	secret := strings.Repeat("s", 32)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--secret", secret, "--sub", "a b"}, "--sub"},
		{
			[]string{"--secret", secret, "--sub", "1", "--email", strings.Repeat("e", 5000)},
			"--email",
		},
		{[]string{"--secret", secret, "--sub", "1", "--ttl=-1h"}, "--ttl -1h0m0s"},
		{[]string{"--secret", secret, "--sub", "1", "--ttl", "0"}, "--ttl 0s"},
		{[]string{"--secret", "short", "--sub", "1"}, "SECKILL_JWT_SECRET (--secret)"},
	} {
		var out strings.Builder
		err := run(t.Context(), append([]string{"token"}, c.args...), nil, &out, io.Discard)
		require.ErrorContains(t, err, c.want)
		var exit *exitError
		require.ErrorAs(t, err, &exit)
		require.Equal(t, codeUsage, exit.ExitCode(), c.args)
		require.Empty(t, out.String(), "a shell would use it as a token")
	}
}

// TestRun_WrongFlagIsOneLineAndNamed types flags with one dash, as the other programs take them.
func TestRun_WrongFlagIsOneLineAndNamed(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-nonsense"}, "unknown flag --nonsense"},
		{[]string{"--nonsense"}, "unknown flag --nonsense"},
		{[]string{"ledger", "7", "-nonsense=5"}, "unknown flag --nonsense"},
		{[]string{"nonsense"}, "unexpected argument nonsense"},
		{[]string{"token", "-role", "king", "-sub", "1"}, "--role must be one of"},
		{[]string{"token", "-sub", "1", "-ttl", "soon"}, "--ttl: expected duration"},
	} {
		var out, trouble strings.Builder
		err := run(t.Context(), c.args, nil, &out, &trouble)
		require.ErrorContains(t, err, c.want)
		require.ErrorContains(t, err, "seckillctl --help lists the commands and flags")
		require.NotContains(t, err.Error(), "\n")
		require.Empty(t, out.String()+trouble.String(), "the caller prints the error")
	}
	var out strings.Builder
	secret := strings.Repeat("s", 32)
	for _, args := range [][]string{
		{"token", "-secret", secret, "-sub", "1"},
		{"-ojson", "token", "--secret=" + secret, "--sub", "1"},
		{"token", "-secret=" + secret, "-sub=1", "-o", "json"},
	} {
		require.NoError(t, run(t.Context(), args, nil, &out, io.Discard), "%v", args)
	}
	require.Equal(t, 2, strings.Count(out.String(), `"expiresAt"`))
}

func TestRebuild_WrongVirtualHostNamesItsSetting(t *testing.T) {
	err := withRemedy(cause.With(errors.New("vhost not found"), cause.NoVHost), nil)
	require.EqualError(t, err,
		"vhost not found\nRabbitMQ refuses the virtual host: correct the end "+
			"of SECKILL_AMQP_URL (--amqp-url)")
}

func TestLimiter_WrongRedisPasswordNamesItsSetting(t *testing.T) {
	addr := servers.Redis(t).Addr()
	admin := redis.NewClient(&redis.Options{Addr: addr})
	defer admin.Close()
	require.NoError(t, admin.ConfigSet(t.Context(), "requirepass", "only we know").Err())
	err := run(t.Context(), []string{
		"limiter", "get", "randomPath", "7", "--redis-addrs", addr, "--redis-password", "a guess",
	}, nil, io.Discard, io.Discard)
	require.ErrorContains(t, err, "Redis at "+addr+" refuses the user or the password: correct "+
		"SECKILL_REDIS_USERNAME (--redis-username) or SECKILL_REDIS_PASSWORD (--redis-password)")
}
