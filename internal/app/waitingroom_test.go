package app_test

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill"
)

// withRoom exposes a sale with a waiting room that starts after a while.
func (h *fixture) withRoom(units int64, startsIn time.Duration) string {
	now := time.Now().UTC()
	r := h.as(merchant(), "POST", "/admin/sales", fmt.Sprintf(`{"title":"a kettle","price":1,
		"stock":%d,"startAt":%q,"endAt":%q,"admission":"waitingRoom"}`, units,
		now.Add(startsIn).Format(time.RFC3339), now.Add(time.Hour).Format(time.RFC3339)))
	require.Equal(h.t, http.StatusCreated, r.Status, r.raw)
	goods := dataOf[struct{ GoodsID string }](h.t, r).GoodsID
	h.does(merchant(), "POST", "/admin/sales/"+goods+"/expose", "")
	h.eventually(func() bool {
		return h.as(seckill.Actor{}, "GET", "/sales/"+goods+"/waiting-room", "").Status == 200
	}, "no admitter made the room ready")
	return goods
}

type place struct {
	Ticket, State    string
	Number, Position int64
	AdmittedUntil    time.Time
}

type room struct {
	Phase                    string
	Joined, Admitted         int64
	DrawSeed, DrawCommitment string
	DrawSize                 *int64
}

// rusher is a buyer who joins a line.
type rusher struct {
	id     int64
	place  place
	called time.Time // end of the admission, as it was first seen
	answer string    // to the purchase: its reason
	order  string    // its number
	late   bool      // the purchase was made after the end of the admission
}

// rush plays a buyer: every fifth leaves when it is called, every other fifth does not act.
func (h *fixture) rush(goods string, b *rusher) {
	who, target := buyer(b.id), "/sales/"+goods+"/waiting-room/me?ticket="+b.place.Ticket
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); {
		r := h.as(who, "GET", target, "")
		if r.Status != http.StatusOK {
			time.Sleep(50 * time.Millisecond)
			continue
		}
		b.place = dataOf[place](h.t, r)
		if b.place.State != "waiting" && b.place.State != "admitted" {
			return
		}
		if b.place.State == "waiting" {
			time.Sleep(100 * time.Millisecond)
			continue
		}
		b.called = b.place.AdmittedUntil
		switch b.id % 5 {
		case 0:
			h.eventually(func() bool { // a busy machine may answer 503 first
				return h.as(who, "DELETE", "/sales/"+goods+"/waiting-room/me", "").Status == http.StatusOK
			}, "nobody could leave")
			return
		case 1:
			return
		}
		h.eventually(func() bool {
			r = h.tries(who, goods, "1")
			return r.Reason != "UNAVAILABLE"
		}, "the purchase was never decided")
		if b.answer = r.Reason; b.answer == "QUEUED" {
			b.order = dataOf[struct{ OrderSn string }](h.t, r).OrderSn
		}
		b.late = time.Now().After(b.called)
		if b.order != "" {
			h.becomes(who, b.order, "created")
			h.does(who, "POST", "/orders/"+b.order+"/pay", "")
		}
		return
	}
}

// TestWaitingRoom_AdmitsNobodyInVain plays a rush of 300 buyers for 20 units, of whom some leave or
// sleep when they are called. Whoever is called and acts in time gets a unit, all are called in the
// order of the draw, and every unit is sold.
func TestWaitingRoom_AdmitsNobodyInVain(t *testing.T) {
	t.Parallel()
	h := openIdle(t, 15*time.Minute)
	h.settings.AdmissionTimeout = 3 * time.Second
	h.work()
	const units = 20
	goods := h.withRoom(units, 15*time.Second)
	before := dataOf[room](t, h.does(seckill.Actor{}, "GET", "/sales/"+goods+"/waiting-room", ""))
	require.Equal(t, "open", before.Phase)
	require.Empty(t, before.DrawSeed)
	buyers := make([]rusher, 300)
	var rushing sync.WaitGroup
	for i := range buyers {
		b := &buyers[i]
		b.id = int64(100 + i)
		rushing.Go(func() {
			h.eventually(func() bool {
				r := h.as(buyer(b.id), "POST", "/sales/"+goods+"/waiting-room", "")
				if r.Status == http.StatusOK {
					b.place = dataOf[place](t, r)
				}
				return r.Status == http.StatusOK
			}, "nobody could join")
		})
	}
	rushing.Wait()
	numbers := map[int64]bool{}
	for i := range buyers {
		b := &buyers[i]
		require.False(t, numbers[b.place.Number], "a number was handed out twice")
		numbers[b.place.Number] = true
		rushing.Go(func() { h.rush(goods, b) })
	}
	h.refuses("NOT_STARTED", buyer(100), "POST", "/randomPath?goodsId="+goods, "")
	rushing.Wait()
	bought := 0
	slices.SortFunc(buyers, func(x, y rusher) int {
		return cmp.Compare(x.place.Position, y.place.Position)
	})
	last := time.Time{}
	for _, b := range buyers {
		require.Contains(t, []string{"", "QUEUED", "WAITING"}, b.answer, "%+v", b)
		require.False(t, b.answer == "WAITING" && !b.late, "admitted in vain: %+v", b)
		if b.answer == "QUEUED" {
			bought++
		}
		if !b.called.IsZero() {
			require.False(t, b.called.Before(last), "overtaken: %+v", b)
			last = b.called
		}
	}
	require.Equal(t, units, bought)
	h.eventually(func() bool {
		return h.as(buyer(1), "POST", "/sales/"+goods+"/waiting-room", "").Reason == "SOLD_OUT"
	}, "the room is never over")
	after := dataOf[room](t, h.does(seckill.Actor{}, "GET", "/sales/"+goods+"/waiting-room", ""))
	require.Equal(t, before.DrawCommitment, after.DrawCommitment)
	require.EqualValues(t, 300, *after.DrawSize)
}

// TestWaitingRoom_Calls checks the answers of the calls around one unit: who joins twice has one
// place, who is not called gets WAITING with the position, and the status is revalidated.
func TestWaitingRoom_Calls(t *testing.T) {
	t.Parallel()
	h := openIdle(t, 15*time.Minute)
	h.settings.AdmissionTimeout = time.Hour
	h.work()
	h.refuses("NOT_FOUND", buyer(1), "POST", "/sales/"+h.exposed("1", "1")+"/waiting-room", "")
	goods := h.withRoom(1, -time.Minute)
	target := "/sales/" + goods + "/waiting-room"
	h.refuses("UNAUTHENTICATED", seckill.Actor{}, "POST", target, "")
	h.refuses("NOT_FOUND", buyer(1), "GET", target+"/me", "")
	first := dataOf[place](t, h.does(buyer(1), "POST", target, ""))
	require.Equal(t, first.Number, dataOf[place](t, h.does(buyer(1), "POST", target, "")).Number)
	second := dataOf[place](t, h.does(buyer(2), "POST", target, `{"ticket":"no ticket"}`))
	require.Equal(t, first.Number+1, second.Number)
	h.eventually(func() bool {
		return dataOf[place](t, h.does(buyer(1), "GET", target+"/me", "")).State == "admitted"
	}, "nobody is called")
	h.refuses("WAITING", buyer(3), "POST", "/randomPath?goodsId="+goods, "")
	r := h.refuses("WAITING", buyer(2), "POST", "/randomPath?goodsId="+goods, "")
	require.Equal(t, http.StatusTooManyRequests, r.Status)
	require.Equal(t, "1", r.Header.Get("Retry-After"))
	require.JSONEq(t, `{"position":2}`, string(r.Data))

	h.eventually(func() bool {
		status := h.does(seckill.Actor{}, "GET", target, "")
		require.Equal(t, "public, max-age=1", status.Header.Get("Cache-Control"))
		again := h.as(seckill.Actor{}, "GET", target, "", "If-None-Match",
			status.Header.Get("ETag"))
		return again.Status == http.StatusNotModified
	}, "the status never had the same ETag twice")

	h.does(buyer(1), "DELETE", target+"/me", "")
	h.refuses("NOT_FOUND", buyer(1), "GET", target+"/me", "")
	h.eventually(func() bool {
		return h.tries(buyer(2), goods, "1").Reason == "QUEUED"
	}, "the unit does not go to the next in line")
	h.refuses("CONFLICT", merchant(), "PATCH", "/admin/sales/"+goods, `{"admission":"rate"}`)
	h.refuses("BAD_REQUEST", merchant(), "PATCH", "/admin/sales/"+goods, `{"admission":"luck"}`)
}
