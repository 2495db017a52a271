package livesales

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
)

// servers are MySQL and Redis. They hold the same of each open sale.
type servers struct {
	sync.Mutex
	rows      map[int64]seckill.Sale
	views     map[int64]seckill.View
	ended     []int64
	unpaid    map[int64]bool
	noAnswer  map[int64]bool // of Redis
	mysqlDown bool
	listed    int
	rowsRead  int
	summed    int
	sumTakes  time.Duration
	viewTakes time.Duration
}

func newServers(sales int64) *servers {
	s := &servers{
		rows: map[int64]seckill.Sale{}, views: map[int64]seckill.View{},
		unpaid: map[int64]bool{}, noAnswer: map[int64]bool{},
	}
	for id := range sales {
		row := seckill.Sale{
			GoodsID: id + 1, Total: 10, Stock: 10, Version: 1, Epoch: 1, Title: "tea",
			Status: seckill.Exposed,
		}
		s.rows[row.GoodsID] = row
		s.views[row.GoodsID] = seckill.View{Sale: row, Gate: seckill.GateOpen, Available: 10}
	}
	return s
}

func (s *servers) answer() error {
	if s.mysqlDown {
		return errors.New("no answer")
	}
	return nil
}

func byID(a, b seckill.Sale) int { return cmp.Compare(a.GoodsID, b.GoodsID) }

func (s *servers) LiveGoods(_ context.Context, buckets []int64) ([]seckill.Sale, error) {
	s.Lock()
	defer s.Unlock()
	s.listed++
	sales := slices.SortedFunc(maps.Values(s.rows), byID)
	if buckets != nil {
		sales = slices.DeleteFunc(sales, func(sale seckill.Sale) bool {
			return !slices.Contains(buckets, sale.GoodsID%Buckets)
		})
	}
	s.rowsRead += len(sales)
	return sales, s.answer()
}

func (s *servers) LiveVersions(context.Context) (map[int64]int64, error) {
	s.Lock()
	takes := s.sumTakes
	s.Unlock()
	time.Sleep(takes)
	s.Lock()
	defer s.Unlock()
	s.summed++
	versions := map[int64]int64{}
	for id, row := range s.rows {
		versions[id%Buckets] += 1 + row.Version<<8 + row.Epoch<<16
	}
	return versions, s.answer()
}

func (s *servers) HasUnpaid(ctx context.Context, goodsID int64) (bool, error) {
	s.Lock()
	defer s.Unlock()
	return s.unpaid[goodsID], cmp.Or(ctx.Err(), s.answer())
}

func (s *servers) Views(_ context.Context, goodsIDs []int64) map[int64]seckill.View {
	s.Lock()
	takes := s.viewTakes
	s.Unlock()
	time.Sleep(takes)
	s.Lock()
	defer s.Unlock()
	views := map[int64]seckill.View{}
	for _, id := range goodsIDs {
		if !s.noAnswer[id] {
			views[id] = s.views[id]
		}
	}
	return views
}

func (s *servers) EndedRests(context.Context) ([]int64, error) {
	s.Lock()
	defer s.Unlock()
	return slices.Clone(s.ended), nil
}

// after makes a change at once and waits.
func (s *servers) after(wait time.Duration, change func(s *servers)) {
	s.Lock()
	change(s)
	s.Unlock()
	time.Sleep(wait)
	synctest.Wait()
}

// setRow changes the row of sale 1 as an order would.
func (s *servers) setRow(change func(*seckill.Sale)) {
	row := s.rows[1]
	row.Version++
	change(&row)
	s.rows[1] = row
}

// setView changes what Redis holds of sale 1.
func (s *servers) setView(change func(*seckill.View)) {
	v := s.views[1]
	change(&v)
	s.views[1] = v
}

// untilRest is the time of one refresh and of two checks of every sale.
const untilRest = refreshInterval + 2*checkParts*checkInterval

// inRest runs a list until all sales are at rest, then the test.
func inRest(t *testing.T, sales int64, test func(t *testing.T, s *servers, l *List)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newServers(sales)
		l := &List{Store: s, Redis: s, Log: slog.New(slog.DiscardHandler)}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- l.Run(ctx) }()
		synctest.Wait()
		require.Equal(t, int(sales), len(l.Sales()))
		s.after(untilRest, func(*servers) {})
		require.Zero(t, len(l.Sales()))
		require.Equal(t, int(sales), len(l.All()))
		test(t, s, l)
		cancel()
		require.NoError(t, <-done)
	})
}

func requireServed(t *testing.T, l *List, goodsIDs ...int64) {
	t.Helper()
	require.ElementsMatch(t, goodsIDs, seckill.GoodsIDs(l.Sales()))
}

// TestList_ChangeEndsRest checks every change that workers must know of.
func TestList_ChangeEndsRest(t *testing.T) {
	for name, change := range map[string]func(s *servers){
		"Redis lost the sale": func(s *servers) { delete(s.views, 1) },
		"shut gate": func(s *servers) {
			s.setView(func(v *seckill.View) { v.Gate = seckill.GateShut })
		},
		"reservation": func(s *servers) { s.setView(func(v *seckill.View) { v.Pending = 1 }) },
		"late write": func(s *servers) {
			s.setView(func(v *seckill.View) { v.Title = "green tea" })
		},
		"order": func(s *servers) { s.setRow(func(r *seckill.Sale) { r.Stock-- }) },
		"close": func(s *servers) {
			s.setRow(func(r *seckill.Sale) { r.Status = seckill.Closed })
		},
		"change": func(s *servers) {
			s.setRow(func(r *seckill.Sale) { r.Title = "green tea" })
		},
		"new epoch": func(s *servers) {
			s.setRow(func(r *seckill.Sale) { r.Version--; r.Epoch++ })
		},
		"MySQL is off": func(s *servers) { s.mysqlDown = true; delete(s.views, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			inRest(t, 2, func(t *testing.T, s *servers, l *List) {
				s.after(refreshInterval, change)
				requireServed(t, l, 1)
			})
		})
	}
}

// TestList_UnsettledSaleDoesNotRest checks what keeps a sale from resting although nothing of it
// changes any more, and that it rests once that is over.
func TestList_UnsettledSaleDoesNotRest(t *testing.T) {
	sold := func(s *servers) {
		s.setRow(func(r *seckill.Sale) { r.Stock-- })
		s.setView(func(v *seckill.View) { v.Available, v.Sold = 9, 1 })
	}
	for name, steps := range map[string]struct{ begin, end func(s *servers) }{
		"outbox entry": {
			func(s *servers) {
				s.setRow(func(*seckill.Sale) {})
				s.setView(func(v *seckill.View) { v.Outbox = 1 })
			},
			func(s *servers) { s.setView(func(v *seckill.View) { v.Outbox = 0 }) },
		},
		"unpaid order": {
			func(s *servers) { sold(s); s.unpaid[1] = true },
			func(s *servers) { delete(s.unpaid, 1) },
		},
		"unit that Redis lacks": {
			func(s *servers) { sold(s); s.setRow(func(r *seckill.Sale) { r.Stock++ }) },
			func(s *servers) { s.setView(func(v *seckill.View) { v.Available, v.Sold = 10, 0 }) },
		},
		"title that Redis lacks": {
			func(s *servers) { s.setRow(func(r *seckill.Sale) { r.Title = "green tea" }) },
			func(s *servers) { s.setView(func(v *seckill.View) { v.Title = "green tea" }) },
		},
		"older epoch": {
			func(s *servers) { s.setRow(func(r *seckill.Sale) { r.Epoch++ }) },
			func(s *servers) { s.setView(func(v *seckill.View) { v.Epoch++ }) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			inRest(t, 2, func(t *testing.T, s *servers, l *List) {
				s.after(5*untilRest, steps.begin)
				requireServed(t, l, 1)
				s.after(2*untilRest, steps.end)
				requireServed(t, l)
			})
		})
	}
}

// TestList_RestSurvivesAnOutage checks that a list learns nothing of a sale whose master does not
// answer, so that an overloaded Redis does not get more load.
func TestList_RestSurvivesAnOutage(t *testing.T) {
	inRest(t, 2, func(t *testing.T, s *servers, l *List) {
		s.after(time.Hour, func(s *servers) { s.noAnswer[1] = true })
		requireServed(t, l)
		s.after(checkInterval, func(s *servers) { delete(s.noAnswer, 1); delete(s.views, 1) })
		requireServed(t, l, 1)
	})
}

// many are more sales than a check reads.
const many = 2000

// TestList_EndedRestIsServedAtOnce checks that a request need not wait for the turn of its sale.
func TestList_EndedRestIsServedAtOnce(t *testing.T) {
	inRest(t, many, func(t *testing.T, s *servers, l *List) {
		s.after(endInterval, func(s *servers) { s.ended = []int64{99, many + 1, 7} })
		requireServed(t, l, 7, 99)
		require.ElementsMatch(t, []int64{7, 99}, seckill.GoodsIDs(l.AskedSales()))
		s.after(2*untilRest, func(s *servers) { s.ended = nil })
		requireServed(t, l)
		require.Empty(t, l.AskedSales())
	})
}

// TestList_LostSaleIsFound checks that checks together read every sale once in a minute.
func TestList_LostSaleIsFound(t *testing.T) {
	inRest(t, many, func(t *testing.T, s *servers, l *List) {
		s.after(checkParts*checkInterval, func(s *servers) { delete(s.views, 1) })
		requireServed(t, l, 1)
	})
}

// TestCheck_SlowRedisLeavesMySQLItsTime checks a sale that sold a unit, which is paid, beside a
// master that does not answer: each reading of Redis then takes as long as it may.
func TestCheck_SlowRedisLeavesMySQLItsTime(t *testing.T) {
	inRest(t, 1, func(_ *testing.T, s *servers, l *List) {
		s.after(refreshInterval, func(s *servers) {
			s.viewTakes = order.RedisDeadline
			s.setRow(func(row *seckill.Sale) { row.Stock-- })
			s.setView(func(v *seckill.View) { v.Available, v.Sold = 9, 1 })
		})
		requireServed(t, l, 1)
		s.after(2*untilRest, func(*servers) {})
		requireServed(t, l)
	})
}

// TestRefresh_ReadsUnchangedRowsRarely checks that rows at rest are not read each second.
func TestRefresh_ReadsUnchangedRowsRarely(t *testing.T) {
	inRest(t, 2, func(t *testing.T, s *servers, _ *List) {
		before := s.listed
		s.after(10*FullInterval, func(*servers) {})
		require.InDelta(t, before+10, s.listed, 1)
	})
}

// TestRefresh_ReadsChangedBuckets checks that only the rows of its bucket are read for a sale that
// changes, joins or leaves the list. The list stays whole and in order.
func TestRefresh_ReadsChangedBuckets(t *testing.T) {
	inRest(t, many, func(t *testing.T, s *servers, l *List) {
		for _, change := range []func(*servers){
			func(s *servers) { s.setRow(func(r *seckill.Sale) { r.Stock-- }) },
			func(s *servers) { s.rows[many+1] = seckill.Sale{GoodsID: many + 1, Version: 1} },
			func(s *servers) { delete(s.rows, 700) },
		} {
			before := s.rowsRead
			s.after(refreshInterval, change)
			require.LessOrEqual(t, s.rowsRead-before, many/Buckets+2)
			require.Equal(t, slices.Sorted(maps.Keys(s.rows)), goodsIDs(l))
		}
	})
	inRest(t, 1, func(t *testing.T, s *servers, l *List) {
		s.after(refreshInterval, func(s *servers) { delete(s.rows, 1) })
		require.Empty(t, l.All(), "a bucket without sales")
	})
}

// TestRefresh_ReadsAllRowsInTheEnd checks that a change which no version shows is found although
// another sale changes all the time.
func TestRefresh_ReadsAllRowsInTheEnd(t *testing.T) {
	inRest(t, many, func(t *testing.T, s *servers, l *List) {
		s.after(0, func(s *servers) {
			row := s.rows[2]
			row.Title = "green tea"
			s.rows[2] = row
		})
		for began := time.Now(); time.Since(began) <= FullInterval; {
			s.after(refreshInterval, func(s *servers) { s.setRow(func(*seckill.Sale) {}) })
		}
		requireServed(t, l, 1, 2)
	})
}

// goodsIDs lists the sales of a list in its order.
func goodsIDs(l *List) (goodsIDs []int64) {
	for _, s := range l.All() {
		goodsIDs = append(goodsIDs, s.GoodsID)
	}
	return goodsIDs
}

// TestLines_AreOfExposedRooms checks that a line is listed until its sale closes, also at rest, and
// that the sales without one are not copied: the Admitter asks ten times a second.
func TestLines_AreOfExposedRooms(t *testing.T) {
	inRest(t, many, func(t *testing.T, s *servers, l *List) {
		require.Zero(t, testing.AllocsPerRun(10, func() { l.Lines() }))
		s.after(refreshInterval, func(s *servers) {
			s.setRow(func(r *seckill.Sale) { r.Admission = seckill.ByWaitingRoom })
		})
		require.Equal(t, []int64{1}, seckill.GoodsIDs(l.Lines()))
		s.after(untilRest, func(*servers) {})
		requireServed(t, l)
		require.Equal(t, []int64{1}, seckill.GoodsIDs(l.Lines()))
		s.after(refreshInterval, func(s *servers) {
			s.setRow(func(r *seckill.Sale) { r.Status = seckill.Closed })
		})
		require.Empty(t, l.Lines())
	})
}

// TestRefresh_TakesLittleOfTheTime checks how often a MySQL that needs time is asked.
func TestRefresh_TakesLittleOfTheTime(t *testing.T) {
	for sumTakes, most := range map[time.Duration]int{
		time.Millisecond: 60, 5 * time.Millisecond: 40, 20 * time.Millisecond: 10, time.Second: 9,
	} {
		inRest(t, 2, func(t *testing.T, s *servers, _ *List) {
			s.after(maxRefresh, func(s *servers) { s.sumTakes = sumTakes })
			before := s.summed
			s.after(time.Minute, func(*servers) {})
			require.InDelta(t, most, s.summed-before, 1)
		})
	}
}

// TestList_AskedSaleIsListedSoon checks that a sale which was exposed and lost after a refresh does
// not wait for the next one where MySQL needs time.
func TestList_AskedSaleIsListedSoon(t *testing.T) {
	inRest(t, 2, func(t *testing.T, s *servers, l *List) {
		s.after(2*maxRefresh, func(s *servers) { s.sumTakes = 20 * time.Millisecond })
		for id := range int64(5) {
			s.after(endInterval+refreshInterval+2*s.sumTakes, func(s *servers) {
				s.rows[10+id] = seckill.Sale{GoodsID: 10 + id, Version: 1, Status: seckill.Exposed}
				s.ended = []int64{10 + id}
			})
			require.Contains(t, seckill.GoodsIDs(l.Sales()), 10+id)
			time.Sleep(time.Second)
		}
		before := s.summed
		s.after(time.Minute, func(*servers) {})
		require.InDelta(t, 10, s.summed-before, 1, "no asked sale is missing any more")
	})
}

// TestPart_ChangingListIsReadInTurn checks that no sale waits for more than a turn of all, while
// another sale joins and leaves the list.
func TestPart_ChangingListIsReadInTurn(t *testing.T) {
	sales, turn, read := make([]int, many+1), 0, make([]int, many)
	for i := range sales {
		sales[i] = i
	}
	longest := 0
	for call := range 100 * checkParts {
		for _, sale := range Part(sales[:many+call/3%2], &turn, checkParts) {
			if sale < many {
				longest, read[sale] = max(longest, call-read[sale]), call
			}
		}
	}
	require.LessOrEqual(t, longest, checkParts, "calls between two of a sale")
}

// sleepyStore is a MySQL whose first list of sales arrives a minute late.
type sleepyStore struct {
	*servers
	slept bool
}

func (s *sleepyStore) LiveGoods(ctx context.Context, buckets []int64) ([]seckill.Sale, error) {
	sales, err := s.servers.LiveGoods(ctx, buckets)
	if !s.slept {
		s.slept = true
		time.Sleep(time.Minute)
	}
	return sales, err
}

// TestRefresh_OlderListReplacesNoNewerOne checks that a process which sleeps in a refresh does not
// forget a sale that another refresh has found meanwhile. The relay refreshes too.
func TestRefresh_OlderListReplacesNoNewerOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sleepyStore{servers: newServers(1)}
		l := &List{Store: s, Redis: s, Log: slog.New(slog.DiscardHandler)}
		go func() { _ = l.Refresh(t.Context()) }()
		synctest.Wait()
		s.after(time.Second, func(s *servers) {
			s.rows[2] = seckill.Sale{GoodsID: 2, Version: 1, Epoch: 1, Status: seckill.Exposed}
		})
		require.NoError(t, l.Refresh(t.Context()))
		requireServed(t, l, 1, 2)
		s.after(time.Minute, func(*servers) {})
		requireServed(t, l, 1, 2)
	})
}
