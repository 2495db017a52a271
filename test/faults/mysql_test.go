package faults

import (
	"testing"
	"time"

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
			name: "mysql-read-only", options: installation.Options{Plain: true},
			inject: midway(func(t *testing.T, r *run) {
				r.SQLDo(t, "SET GLOBAL read_only = ON")
				time.Sleep(5 * time.Second)
				r.SQLDo(t, "SET GLOBAL read_only = OFF")
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
		r.untilSold(r.random(0.1, 0.4))
		primary := r.Primary(t)
		require.NoError(t, primary.Kill())
		time.Sleep(r.randomSeconds(0, 2))
		require.NoError(t, primary.Restart(t.Context()))
		r.untilSold(r.random(0.5, 0.8))
	}
}

// fillDisk fills the disk of MySQL, or of a group's primary, for 8 s. A server that ends by itself
// on a full disk is started again once there is room, as an operator would.
func fillDisk(t *testing.T, r *run) {
	r.untilSold(r.random(0.1, 0.3))
	written, promised := r.Facts(t, r.goods).Orders, r.promised.Load()
	r.Disk.Fill(t)
	time.Sleep(8 * time.Second)
	ended := !r.SQL.Running()
	more := r.promised.Load() - promised
	log := r.SQL.Log()
	r.Disk.Free(t)
	if ended {
		require.NoError(t, r.SQL.Restart(t.Context()))
	}
	t.Logf("the server's log:\n%s", log)
	t.Logf("%d orders when the disk was full, %d promised meanwhile, %d written after; ended: %t",
		written, more, r.Facts(t, r.goods).Orders-written, ended)
	require.Positive(t, more, "a full disk of MySQL stopped the API")
}
