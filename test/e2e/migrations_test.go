package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/must"
)

// allowedStatements lists the statements that remove or change something, each with the reason why
// programs of the previous release work after it. A column that they need stays until nobody can go
// back to them.
func allowedStatements() map[string]string {
	return map[string]string{
		"ALTER TABLE orders MODIFY phone VARCHAR(255) NOT NULL":       "wider: what fitted fits",
		"ALTER TABLE orders MODIFY phone VARCHAR(1600) NOT NULL":      "wider: what fitted fits",
		"ALTER TABLE late_orders MODIFY phone VARCHAR(1600) NOT NULL": "wider: what fitted fits",
		"ALTER TABLE sale_audit MODIFY was MEDIUMTEXT NOT NULL, " +
			"MODIFY became MEDIUMTEXT NOT NULL": "longer: what fitted fits",
		"ALTER TABLE idempotency_keys MODIFY answer MEDIUMTEXT NOT NULL": "longer: what fitted fits",
		"ALTER TABLE stock_cuts MODIFY wanted MEDIUMTEXT NOT NULL":       "longer: what fitted fits",
		"DROP INDEX stock_moves_not_given ON stock_moves":                "stock_moves_by_goods serves as well",
	}
}

// TestMigrations_OnlyAdd requires migrations that only add, except for allowedStatements. Programs
// of two releases share the database during an upgrade.
func TestMigrations_OnlyAdd(t *testing.T) {
	files := must.Get(filepath.Glob("../../migrations/*.sql"))(t)
	require.NotEmpty(t, files)
	for _, file := range files {
		text := must.Get(os.ReadFile(file))(t)
		up, _, _ := strings.Cut(string(text), "-- +goose Down")
		for _, statement := range statements(up) {
			if mayBreakPrevious(statement) {
				require.Contains(t, allowedStatements(), statement,
					"%s: programs of the previous release would fail", filepath.Base(file))
			}
		}
	}
}

// mayBreakPrevious reports whether programs of the previous release may fail after a statement: it
// removes or changes something, or adds a column that their INSERTs lack.
func mayBreakPrevious(statement string) bool {
	const change = `(?i)\b(DROP|RENAME|MODIFY|CHANGE)\b`
	const column = `(?i)\bADD\s+(COLUMN\s+)?\w+\s[^;]*NOT NULL`
	const harmless = `(?i)\bDEFAULT\b|\bADD\s+(CONSTRAINT|INDEX|UNIQUE|KEY|PRIMARY)\b`
	has := func(pattern string) bool { return regexp.MustCompile(pattern).MatchString(statement) }
	return has(change) || has(column) && !has(harmless)
}

// TestMayBreakPrevious_DefaultExcusesNoChange checks statements that also have a default.
func TestMayBreakPrevious_DefaultExcusesNoChange(t *testing.T) {
	for _, statement := range []string{
		"ALTER TABLE sales MODIFY title VARCHAR(9) NOT NULL DEFAULT ''",
		"ALTER TABLE sales DROP COLUMN title, ADD COLUMN name VARCHAR(9) NOT NULL DEFAULT ''",
		"ALTER TABLE sales ADD COLUMN name VARCHAR(9) NOT NULL",
	} {
		require.True(t, mayBreakPrevious(statement), statement)
	}
	require.False(t,
		mayBreakPrevious("ALTER TABLE sales ADD COLUMN name VARCHAR(9) NOT NULL DEFAULT ''"))
}

// statements returns the statements of a migration, without comments, on one line each. It keeps
// the text of MySQL's executable comments (/*! */).
func statements(text string) []string {
	text = regexp.MustCompile(`(?m)--.*$`).ReplaceAllString(text, "")
	var all []string
	for part := range strings.SplitSeq(text, ";") {
		part = strings.NewReplacer("/*!", "", "*/", "").Replace(part)
		if part = strings.Join(strings.Fields(part), " "); part != "" {
			all = append(all, part)
		}
	}
	return all
}
