package bench

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/must"
)

// contest has the sides of a comparison: this commit's programs, those of olderSetting if it is
// set, and the floor program. The floor program uses the servers of this commit's programs.
type contest struct {
	*fixture
	older *fixture // nil if there is none
	floor side
}

// side is one of them.
type side struct {
	name, addr string
	processes
	// sale puts up a sale. The floor program has one endless sale.
	sale func(units int64) (goods string)
	// written waits until all orders are in the database, and counts the units that were bought.
	written func(goods string) int
}

func newContest(b *testing.B) *contest {
	b.Helper()
	c := &contest{fixture: newFixture(b)}
	if folder := os.Getenv(olderSetting); folder != "" {
		c.older = newFixtureOf(b, folder)
	}
	c.startFloor()
	return c
}

// run measures in a benchmark of its own.
func (c *contest) run(name string, measure func(b *testing.B)) {
	outer := c.b
	use := func(b *testing.B) {
		c.b = b
		if c.older != nil {
			c.older.b = b
		}
	}
	outer.Run(name, func(b *testing.B) {
		use(b)
		measure(b)
	})
	use(outer)
}

// servers are the processes behind the programs.
func (f *fixture) servers() processes {
	return processes{
		redisPart: {f.Redis.Pid()}, sqlPart: {f.SQL.Pid()}, rabbitPart: {f.Rabbit.Pid()},
	}
}

// all are the processes of the installation.
func (f *fixture) all() processes {
	p := f.servers()
	p[apiPart], p[consumerPart] = []int{f.APIs[0].Pid()}, []int{f.Consumers[0].Pid()}
	return p
}

func (f *fixture) side(name string) side { return side{name, f.api, f.all(), f.sale, f.written} }

// products are the sides that are no floor.
func (c *contest) products() []side {
	sides := []side{c.side("ours")}
	if c.older != nil {
		sides = append(sides, c.older.side("earlier commit"))
	}
	return sides
}

// sides are all sides, ours first.
func (c *contest) sides() []side { return append(c.products(), c.floor) }

// contenders let each side do the same work.
func contenders(sides []side, work func(side) measurement) (all []contender) {
	for _, s := range sides {
		all = append(all, contender{s.name, func() measurement { return work(s) }})
	}
	return all
}

// sell lets a side sell to a load, and measures until the last order is in the database. The rate
// is that of the answers.
func (c *contest) sell(s side, goods string, l load) measurement {
	c.b.Helper()
	l.addr, l.n, l.want = s.addr, len(l.requests), http.StatusAccepted
	sold, before := s.written(goods), s.read()
	answered, took := l.play(c.b)
	done := s.written(goods) - sold
	require.Positive(c.b, answered)
	return measurement{
		done: done, cpu: s.since(before),
		took: took * time.Duration(done) / time.Duration(answered),
	}
}

// startFloor runs the floor program until the benchmark ends. It copies answers of our API.
func (c *contest) startFloor() {
	c.b.Helper()
	gone := c.sale(1)
	id := serial.Add(1)
	header, order := c.answerOf(http.MethodGet, "/orders/"+c.buy(gone, id), id)
	_, soldOut := c.answerOf(http.MethodPost, "/randomPath?goodsId="+gone, id)
	spec := floorSpec{
		Redis: c.Redis.Addr(), AMQP: c.AMQP, DSN: c.DSN,
		SoldOut: header, SoldOutBody: soldOut, OrderBody: order,
	}
	line := "/sales/" + c.room() + "/waiting-room"
	spec.Room, spec.RoomBody = c.answerOf(http.MethodGet, line, id)
	_, spec.PlaceBody = c.answerOf(http.MethodPost, line, id)
	addr, server := c.startFloorProcess(spec)
	spec.Writes = true
	_, writer := c.startFloorProcess(spec)
	p := c.servers()
	p[apiPart], p[consumerPart] = []int{server}, []int{writer}
	db := must.Get(sql.Open("mysql", c.DSN))(c.b)
	c.b.Cleanup(func() { _ = db.Close() })
	c.floor = side{
		"floor program", addr, p,
		func(int64) string { return strconv.Itoa(floorGoods) },
		func(string) int { return c.floorWritten(db) },
	}
}

// startFloorProcess returns the first word that the process prints, and its id.
func (c *contest) startFloorProcess(spec floorSpec) (word string, pid int) {
	c.b.Helper()
	text := must.Get(json.Marshal(spec))(c.b)
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), floorSetting+"="+string(text)), os.Stderr
	stop := must.Get(cmd.StdinPipe())(c.b)
	out := must.Get(cmd.StdoutPipe())(c.b)
	require.NoError(c.b, cmd.Start())
	c.b.Cleanup(func() { _ = stop.Close(); _ = cmd.Wait() })
	must.Get(fmt.Fscanln(out, &word))(c.b, "the floor program did not start")
	return word, cmd.Process.Pid
}

// floorWritten waits until all orders in Redis are in the database.
func (c *contest) floorWritten(db *sql.DB) (orders int) {
	c.b.Helper()
	require.Eventually(c.b, func() bool {
		taken, err := c.client.HGet(c.b.Context(), fmt.Sprintf("sk:{%d}", floorGoods), "pend").Int()
		if errors.Is(err, redis.Nil) {
			return true // nothing was bought yet
		}
		if err == nil {
			err = db.QueryRowContext(c.b.Context(),
				`SELECT COALESCE(MAX(id), 0) FROM floor_orders`).Scan(&orders)
		}
		return err == nil && orders == taken
	}, time.Minute, 20*time.Millisecond, "orders of the floor program are not written")
	return orders
}
