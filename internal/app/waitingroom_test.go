package app_test

import (
	"fmt"
	"net/http"
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
	require.Equal(h.t, http.StatusCreated, r.Status, r.Body)
	goods := dataOf[struct{ GoodsID string }](h.t, r).GoodsID
	h.does(merchant(), "POST", "/admin/sales/"+goods+"/expose", "")
	h.eventually(func() bool {
		return h.as(seckill.Actor{}, "GET", "/sales/"+goods+"/waiting-room", "").Status == 200
	}, "no admitter made the room ready")
	return goods
}

type place struct {
	Ticket, State string
	Number        int64
}

type room struct{ AdmissionSeconds float64 }

// TestWaitingRoom_OneUnitPassesToTheNextUntilTheRoomIsOver checks the answers of the calls. A buyer
// who joins twice has one place. A buyer who is not called gets WAITING with the position. The
// status is revalidated by its ETag. A unit that the first buyer leaves goes to the second.
func TestWaitingRoom_OneUnitPassesToTheNextUntilTheRoomIsOver(t *testing.T) {
	t.Parallel()
	h := openIdle(t, 15*time.Minute)
	h.settings.AdmissionTimeout = time.Hour
	h.work()
	h.refuses("NOT_FOUND", buyer(1), "POST", "/sales/"+h.exposed("1", "1")+"/waiting-room", "")
	early := h.withRoom(1, time.Minute)
	h.does(buyer(1), "POST", "/sales/"+early+"/waiting-room", "")
	h.refuses("NOT_STARTED", buyer(1), "POST", "/randomPath?goodsId="+early, "")
	goods := h.withRoom(1, -time.Minute)
	target := "/sales/" + goods + "/waiting-room"
	h.refuses("UNAUTHENTICATED", seckill.Actor{}, "POST", target, "")
	h.refuses("NOT_FOUND", buyer(1), "GET", target+"/me", "")
	first := dataOf[place](t, h.does(buyer(1), "POST", target, ""))
	require.Equal(t, first.Number, dataOf[place](t, h.does(buyer(1), "POST", target, "")).Number)
	h.refuses("BAD_REQUEST", buyer(2), "POST", target, `{"ticket":1}`)
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

	path := dataOf[struct{ RandomPath string }](t,
		h.does(buyer(1), "POST", "/randomPath?goodsId="+goods, "")).RandomPath
	h.does(buyer(1), "DELETE", target+"/me", "")
	h.refuses("NOT_FOUND", buyer(1), "GET", target+"/me", "")
	h.does(buyer(1), "POST", target, "") // at the end of the line
	r = h.takes(buyer(1), goods, "1", path)
	require.Equal(t, "WAITING", r.Reason, "%s", r.Data)
	require.JSONEq(t, `{"position":3}`, string(r.Data))
	var bought reply
	h.eventually(func() bool {
		bought = h.tries(buyer(2), goods, "1")
		return bought.Reason == "QUEUED"
	}, "the unit does not go to the next in line")
	h.eventually(func() bool {
		return h.as(buyer(2), "GET", target+"/me?ticket="+second.Ticket, "").Reason == "NOT_FOUND"
	}, "a buyer who has bought still has a place")
	h.eventually(func() bool { // the status may be a second old
		shown := dataOf[room](t, h.does(seckill.Actor{}, "GET", target, ""))
		return shown.AdmissionSeconds == time.Hour.Seconds()
	}, "the status does not say how long an admission lasts")
	sn := dataOf[struct{ OrderSn string }](t, bought).OrderSn
	h.becomes(buyer(2), sn, "created")
	r = h.refuses("LIMIT_REACHED", buyer(2), "POST", target, "")
	require.JSONEq(t, `{"orderSns":["`+sn+`"]}`, string(r.Data))
	h.does(buyer(2), "POST", "/orders/"+sn+"/pay", "")
	h.eventually(func() bool {
		return h.as(buyer(4), "POST", target, "").Reason == "SOLD_OUT" ||
			dataOf[place](t, h.does(buyer(4), "POST", target, "")).State == "over"
	}, "the room is never over")
	require.Equal(t, "over", dataOf[place](t, h.does(buyer(1), "POST", target, "")).State)
	late := int64(5)
	h.eventually(func() bool { // the status may be a second old
		late++
		return h.as(buyer(late), "POST", target, "").Reason == "SOLD_OUT"
	}, "a room that is over hands out places")
	h.refuses("CONFLICT", merchant(), "PATCH", "/admin/sales/"+goods, `{"admission":"rate"}`)
	h.refuses("BAD_REQUEST", merchant(), "PATCH", "/admin/sales/"+goods, `{"admission":"luck"}`)
}
