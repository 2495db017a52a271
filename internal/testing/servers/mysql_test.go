package servers_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/servers"
)

func TestMySQL(t *testing.T) { testSQL(t, servers.MySQL, "") }

func TestMySQLIsNoMariaDB(t *testing.T) {
	var comment string
	row := openSQL(t, env.MySQL(t).DSN("")).QueryRowContext(t.Context(), "SELECT CONCAT(@@version, @@version_comment)")
	require.NoError(t, row.Scan(&comment))
	require.NotContains(t, comment, "MariaDB")
}
