package cause_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/cause"
)

// reply is an error that Redis answered.
type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

func TestOf_HasNoAddress(t *testing.T) {
	number := func(n uint16) error { return &mysql.MySQLError{Number: n, Message: "db.example"} }
	for _, c := range []struct {
		err     error
		want    string
		refused string
	}{
		{nil, "", ""},
		{number(1045), cause.Refused, "MySQL"},
		{number(1044), cause.NoDatabase, ""},
		{number(1049), cause.NoDatabase, ""},
		{number(1040), cause.Crowded, ""},
		{number(1146), cause.NotMigrated, ""},
		{number(1290), cause.ReadOnly, ""},
		{number(3159), cause.NeedsTLS, ""},
		{number(1142), cause.Denied, ""},
		{number(1665), cause.Statements, ""},
		{number(9999), cause.Other, ""},
		{&tls.CertificateVerificationError{Err: errors.New("expired")}, cause.Untrusted, ""},
		{tls.RecordHeaderError{Msg: "first record"}, cause.NoTLS, ""},
		{mysql.ErrNoTLS, cause.NoTLS, ""},
		{reply("WRONGPASS invalid username-password pair"), cause.Refused, "Redis"},
		{reply("NOAUTH Authentication required."), cause.Refused, "Redis"},
		{reply("ERR AUTH <password> called without any password"), cause.Refused, "Redis"},
		{reply("READONLY You can't write against a read only replica."), cause.ReadOnly, ""},
		{reply("LOADING Redis is loading the dataset in memory"), cause.Loading, ""},
		{reply("NOPERM this user has no permissions to run the 'eval' command"), cause.Denied, ""},
		{reply("OOM command not allowed"), cause.Full, ""},
		{reply("MISCONF Errors writing to the AOF file"), cause.Unsaved, ""},
		{reply("NOREPLICAS Not enough good replicas to write."), cause.Replicas, ""},
		{reply("ERR max number of clients reached"), cause.Crowded, ""},
		{reply("ERR This instance has cluster support disabled"), cause.NoCluster, ""},
		{redis.ErrPoolTimeout, cause.Silent, ""},
		{context.DeadlineExceeded, cause.Silent, ""},
		{&net.OpError{Op: "dial", Err: errors.New("refused")}, cause.Unreachable, ""},
		{
			&net.OpError{Op: "dial", Err: os.NewSyscallError("socket", syscall.EMFILE)},
			cause.NoFiles, "",
		},
		{net.ErrClosed, cause.Unreachable, ""}, // go-redis omits the OpError
		{&net.OpError{Op: "remote error", Err: tls.AlertError(116)}, cause.Other, ""},
		{cause.With(errors.New("db.example"), cause.Refused), cause.Refused, "RabbitMQ"},
		{errors.New("db.example"), cause.Other, ""},
	} {
		if c.err != nil {
			c.err = fmt.Errorf("ping db.example: %w", c.err)
		}
		require.Equal(t, c.want, cause.Of(c.err), "%v", c.err)
		require.Equal(t, c.refused, cause.RefusedBy(c.err), "%v", c.err)
	}
}
