package servers

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/go-sql-driver/mysql"
)

// leads reports whether a member takes writes and sees most of its group: one that is cut off with the fewer says for some
// seconds that it may write, and can't.
func (s *SQLServer) leads(ctx context.Context) (bool, error) {
	var readOnly, all, well int
	err := s.row(ctx, `SELECT @@GLOBAL.super_read_only, COUNT(*), COALESCE(SUM(MEMBER_STATE IN ('ONLINE', 'RECOVERING')), 0)
		FROM performance_schema.replication_group_members`, &readOnly, &all, &well)
	return err == nil && readOnly == 0 && all > 0 && 2*well > all && s.online(ctx) == nil, err
}

func (s *SQLServer) row(ctx context.Context, query string, into ...any) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	return withSQL(ctx, s.base.Clone(), func(db *sql.DB) error { return db.QueryRowContext(ctx, query).Scan(into...) })
}

// execute runs one statement, whatever it returns.
func (s *SQLServer) execute(ctx context.Context, statement string) error {
	return withSQL(ctx, s.base.Clone(), func(db *sql.DB) error {
		_, err := db.ExecContext(ctx, statement)
		return err
	})
}

// awaitGroup asks until there is no error, for groupPatience at most.
func awaitGroup(ctx context.Context, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, groupPatience)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("in %v (%w): %w", groupPatience, ctx.Err(), err)
		case <-tick.C:
		}
	}
}

// sqlConfigOf is how to log in at an address.
func sqlConfigOf(port int) *mysql.Config {
	base := mysql.NewConfig()
	base.User, base.Passwd, base.Net, base.Addr = sqlUser, sqlPassword, "tcp", loopback(port)
	return base
}
