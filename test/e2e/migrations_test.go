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

// contracts are the statements that take something away or change it, each with why programs of the
// release before can do without: what they need must stay until none of them can come back.
func contracts() map[string]string {
	return map[string]string{
		"ALTER TABLE orders MODIFY phone VARCHAR(255) NOT NULL": "wider: what fitted fits",
	}
}

// Programs of two releases share the database while one takes the other's place, so migrations only
// add.
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
					"%s: the release before this one would trip over it", filepath.Base(file))
			}
		}
	}
}

// statements are those of a migration, without comments, on one line each. MySQL's own stand in /*!
// */.
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
