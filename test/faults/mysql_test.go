package faults

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/installation"
)

func mysqlFaults() []fault {
	return []fault{
		{name: "mysql-killed-twice", spread: 10 * time.Second, inject: killMySQLTwice},
		{name: "mysql-paused", inject: midway(func(t *testing.T, r *run) {
			pause(t, r.Primary(t), 10*time.Second)
		})},
		{
			name: "mysql-read-only", options: installation.Options{PlainAccount: true},
			inject: midway(func(t *testing.T, r *run) {
				r.ExecSQL(t, "SET GLOBAL read_only = ON")
				before := r.Facts(t, r.goods)
				time.Sleep(5 * time.Second)
				after := r.Facts(t, r.goods)
				r.ExecSQL(t, "SET GLOBAL read_only = OFF")
				require.Equal(t, before, after, "the programs write")
			}),
		},
		{
			name: "mysql-disk-full", options: installation.Options{OwnSQL: true},
			spread: 20 * time.Second, concurrent: true, inject: fillDisk,
		},
	}
}

func killMySQLTwice(t *testing.T, r *run) {
	for range 2 {
		r.untilPromised(r.random(0.1, 0.4))
		primary := r.Primary(t)
		require.NoError(t, primary.Kill())
		time.Sleep(r.randomSeconds(0, 2))
		require.NoError(t, primary.Restart(t.Context()))
		r.untilPromised(r.random(0.5, 0.8))
	}
}

// fillDisk fills the disk of MySQL for 8 s. MariaDB may end by itself on a full disk, and also a
// moment after there is room again, while it rolls back.
func fillDisk(t *testing.T, r *run) {
	r.untilPromised(r.random(0.1, 0.3))
	promised := r.promised.Load()
	r.Disk.Fill(t)
	time.Sleep(8 * time.Second)
	t.Logf("the server's log:\n%s", r.SQL.Log())
	require.Greater(t, r.promised.Load(), promised, "a full disk of MySQL stopped the API")
	r.Disk.Free(t)
	go r.keepSQLRunning(t)
}

// keepSQLRunning starts MySQL again whenever it has ended, as an operator would, until the last
// buyer has left.
func (r *run) keepSQLRunning(t *testing.T) {
	for {
		select {
		case <-r.ended:
			return
		case <-time.After(100 * time.Millisecond):
		}
		if !r.SQL.Running() && t.Context().Err() == nil {
			t.Log("MySQL has ended, and is started again")
			assert.NoError(t, r.SQL.Restart(t.Context()))
		}
	}
}
