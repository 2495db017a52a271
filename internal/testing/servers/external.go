package servers

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"time"

	"github.com/go-sql-driver/mysql"
)

// EnvExternalSQL names the environment variable whose DSN (go-sql-driver's form; its database is ignored) replaces the private MariaDB
// and MySQL. The account must be allowed to create and drop databases named seckill_test_*; nothing else is touched.
const EnvExternalSQL = "SECKILL_TEST_MYSQL_DSN"

func externalSQL() (string, bool) {
	dsn := os.Getenv(EnvExternalSQL)
	return dsn, dsn != ""
}

// openExternal returns the handle of somebody else's server, which must answer now.
func openExternal(ctx context.Context, dsn string) (*SQLServer, error) {
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", EnvExternalSQL, err)
	}
	server := &SQLServer{base: config, Server: &Server{name: EnvExternalSQL, external: true}}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := withSQL(ctx, config.Clone(), func(db *sql.DB) error { return db.PingContext(ctx) }); err != nil {
		return nil, fmt.Errorf("reach %s: %w", EnvExternalSQL, err)
	}
	return server, nil
}
