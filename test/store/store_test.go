// Package store runs the store's suite on each kind of SQL server that the project knows, as an operator would on his own: by
// make test-store, with the server's address in SECKILL_TEST_MYSQL_DSN. It takes minutes, and a flag to begin:
//
//	go test -v -count=1 ./test/store -store.suite
package store

import (
	"flag"
	"os"
	"os/exec"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"flashsale.dev/seckill/internal/testenv"
)

var (
	env       = testenv.NewSuite()
	suiteFlag = flag.Bool("store.suite", false, "run make test-store on MariaDB, on MySQL and on the primary of a MySQL group of three")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(env.Around(m)) }

func TestTheStoresSuiteOnEachServer(t *testing.T) {
	if !*suiteFlag {
		return
	}
	t.Setenv(testenv.EnvExternalSQL, "") // those that are started here are meant
	for name, server := range map[string]func(t *testing.T) *testenv.SQLServer{
		"MariaDB": func(t *testing.T) *testenv.SQLServer { return env.MariaDB(t) },
		"MySQL":   func(t *testing.T) *testenv.SQLServer { return env.MySQL(t) },
		"a MySQL group's primary": func(t *testing.T) *testenv.SQLServer {
			primary, err := env.MySQLGroup(t).Primary(t.Context())
			require.NoError(t, err)
			return primary
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := exec.CommandContext(t.Context(), "make", "-C", "../..", "test-store")
			c.Env = append(os.Environ(), testenv.EnvExternalSQL+"="+server(t).DSN(""))
			out, err := c.CombinedOutput()
			require.NoError(t, err, "%s", out)
			t.Logf("%s", regexp.MustCompile(`(?m)^ok.*$`).FindAllString(string(out), -1))
		})
	}
}
