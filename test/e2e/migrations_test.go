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

// contracts lists the statements that remove or change something. Each has the reason why programs
// of the previous release work without it. A column that they need stays until they can no longer
// return.
func contracts() map[string]string {
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

// TestMigrations_OnlyAdd requires migrations that only add. Programs of two releases share the
// database during an upgrade.
func TestMigrations_OnlyAdd(t *testing.T) {
	files := must.Get(filepath.Glob("../../migrations/*.sql"))(t)
	require.NotEmpty(t, files)
	takes := regexp.MustCompile(`(?i)\b(DROP|RENAME|MODIFY|CHANGE)\b|\bADD\s+(COLUMN\s+)?\w+\s[^;]*NOT NULL`)
	defaults := regexp.MustCompile(`(?i)\bDEFAULT\b|\bADD\s+(CONSTRAINT|INDEX|UNIQUE|KEY|PRIMARY)\b`)
	for _, file := range files {
		text := must.Get(os.ReadFile(file))(t)
		up, _, _ := strings.Cut(string(text), "-- +goose Down")
		for _, statement := range statements(up) {
			if takes.MatchString(statement) && !defaults.MatchString(statement) {
				require.Contains(t, contracts(), statement,
					"%s: programs of the previous release would fail", filepath.Base(file))
			}
		}
	}
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
