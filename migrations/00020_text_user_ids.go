package migrations

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"

	"github.com/pressly/goose/v3"
)

// userColumns are the columns with ids of users, by table.
func userColumns() map[string]string {
	return map[string]string{
		"sales": "merchant_id", "orders": "buyer_id", "buyer_holdings": "buyer_id",
		"stock_moves": "buyer_id", "late_orders": "buyer_id", "sale_audit": "actor_id",
		"stock_cuts": "actor_id", "idempotency_keys": "actor_id",
	}
}

// TextUserIDs is step 20: ids of users become text, because identity providers choose them. Numbers
// stay as they are, in decimal. 0, which meant nobody, becomes the empty text. Programs that expect
// numbers read and write these columns too, so there is no way back to numbers.
//
// The step is in Go because MySQL changes a column's type and SQLite cannot: its table is copied.
// MySQL copies the table too, and writers wait meanwhile.
func TextUserIDs(sqlite bool) *goose.Migration {
	up := func(ctx context.Context, tx *sql.Tx) error {
		for table, column := range userColumns() {
			change := alterColumn
			if sqlite {
				change = copyTable
			}
			err := change(ctx, tx, table, column)
			if err == nil {
				_, err = tx.ExecContext(ctx,
					fmt.Sprintf("UPDATE %s SET %s = '' WHERE %[2]s = '0'", table, column))
			}
			if err != nil {
				return fmt.Errorf("make %s.%s text: %w", table, column, err)
			}
		}
		return nil
	}
	return goose.NewGoMigration(20, &goose.GoFunc{RunTx: up},
		&goose.GoFunc{Mode: goose.TransactionEnabled})
}

// alterColumn makes a column of MySQL text.
func alterColumn(ctx context.Context, tx *sql.Tx, table, column string) error {
	_, err := tx.ExecContext(ctx,
		fmt.Sprintf("ALTER TABLE %s MODIFY %s VARCHAR(64) NOT NULL", table, column))
	return err
}

// copyTable replaces a table of SQLite by one whose column is text, with the same indexes.
func copyTable(ctx context.Context, tx *sql.Tx, table, column string) error {
	definitions, err := definitionsOf(ctx, tx, table)
	if err != nil {
		return err
	}
	name := regexp.MustCompile(`^CREATE TABLE "?` + table + `"?`)
	typed := regexp.MustCompile(`(\n\s*` + column + `\s+)BIGINT`)
	copied := name.ReplaceAllString(definitions[0], "CREATE TABLE "+table+"_copy")
	statements := append([]string{
		typed.ReplaceAllString(copied, "${1}VARCHAR(64)"),
		fmt.Sprintf("INSERT INTO %s_copy SELECT * FROM %[1]s", table),
		"DROP TABLE " + table,
		fmt.Sprintf("ALTER TABLE %s_copy RENAME TO %[1]s", table),
	}, definitions[1:]...)
	for _, statement := range statements {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// definitionsOf returns the statements that make a table of SQLite and, after it, its indexes.
func definitionsOf(ctx context.Context, tx *sql.Tx, table string) (statements []string, err error) {
	rows, err := tx.QueryContext(ctx, `SELECT sql FROM sqlite_master
		WHERE tbl_name = ? AND sql IS NOT NULL ORDER BY type DESC`, table)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var statement string
		if err := rows.Scan(&statement); err != nil {
			return nil, err
		}
		statements = append(statements, statement)
	}
	return statements, rows.Err()
}
