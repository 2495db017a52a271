package testenv_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testenv"
)

func TestMySQL(t *testing.T) { testSQL(t, testenv.MySQL, "") }

func TestMySQLIsNoMariaDB(t *testing.T) {
	var comment string
	row := openSQL(t, env.MySQL(t).DSN("")).QueryRowContext(t.Context(), "SELECT CONCAT(@@version, @@version_comment)")
	require.NoError(t, row.Scan(&comment))
	require.NotContains(t, comment, "MariaDB")
}
