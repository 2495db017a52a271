package redisstore

import (
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"flashsale.dev/seckill/scripts/lua"
)

// Store is a client of one Redis: a server, a Sentinel's master or a cluster. It is safe for
// concurrent use.
type Store struct {
	client redis.UniversalClient
	opts   Options

	reserve, view, load, updateSale, settle, release, adopt, retire *redis.Script
	open, readLease, shut, stage                                    *redis.Script
	join, admit, prepare, roomSet                                   *redis.Script
}

// Options are the settings of a Store.
type Options struct {
	// Lease is a token of the process that replaces the master's replication id on servers without
	// one (miniredis). Empty: the scripts read INFO.
	Lease string
	// MaxBacklogMillis is the age of the oldest pending reservation, in ms, above which Reserve
	// refuses every call; 0: never.
	MaxBacklogMillis int64
	// WaitReplicas is how many replicas must confirm what Reserve and Adopt take within WaitTimeout
	// (whole milliseconds). 0: the master alone counts.
	WaitReplicas int
	WaitTimeout  time.Duration
	// FailsOver: Redis has replicas that may be promoted. A load then leaves the gate shut, and
	// OpenGate opens it for a time.
	FailsOver bool
}

// New returns a Store on a client, which the caller closes.
func New(client redis.UniversalClient, opts Options) *Store {
	gated := func(name string) *redis.Script {
		return redis.NewScript(lua.Source("gate") + lua.Source(name))
	}
	plain := func(name string) *redis.Script { return redis.NewScript(lua.Source(name)) }
	ofRoom := func(name string) *redis.Script {
		return redis.NewScript(lua.Source("gate") + lua.Source("room") + lua.Source(name))
	}
	return &Store{
		client: client, opts: opts,
		reserve: gated("reserve"), view: gated("view"), load: gated("load"), adopt: gated("adopt"),
		open: gated("open"), readLease: gated("lease"), shut: gated("shut"),
		stage:   gated("stage"),
		release: gated("release"), settle: gated("settle"),
		updateSale: plain("update"), retire: plain("retire"),
		join: ofRoom("join"), admit: ofRoom("admit"), prepare: ofRoom("prepare"),
		roomSet: plain("roomset"),
	}
}

// keys builds the key names of one goods.
type keys string

func keysOf(goodsID int64) keys { return keys("sk:{" + strconv.FormatInt(goodsID, 10) + "}") }

func (k keys) sale() string    { return string(k) }
func (k keys) buyers() string  { return string(k) + ":buyers" }
func (k keys) pending() string { return string(k) + ":pending" }
func (k keys) blocks() string  { return string(k) + ":blocks" }
func (k keys) outbox() string  { return string(k) + ":outbox" }
func (k keys) moves() string   { return string(k) + ":moves" }

// storedPath is the key of a reservation's StoredPath.
func (k keys) storedPath(path string) string { return string(k) + ":p:" + path }

// stage is the key of one load. Two loads of an epoch have two: MySQL may have lost the epoch of
// the first in a failover.
func (k keys) stage(load string) string { return string(k) + ":stage:" + load }

func (k keys) counters() string          { return string(k) + ":tally" }
func (k keys) orderRates() string        { return string(k) + ":pace" }
func (k keys) replicationMarker() string { return string(k) + ":waited" }
func (k keys) room() string              { return string(k) + ":room" }
func (k keys) turns() string             { return string(k) + ":turns" }
func (k keys) done() string              { return string(k) + ":done" }
func (k keys) used() string              { return string(k) + ":used" }
func (k keys) gap() string               { return string(k) + ":gap" }
func (k keys) late() string              { return string(k) + ":late" }
func (k keys) bucket(i uint32) string {
	return string(k) + ":room:" + strconv.FormatUint(uint64(i), 10)
}
func (k keys) rebuildLock() string { return string(k) + ":rebuild" }
