package app_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/accesscode"
)

// withCodes exposes an ongoing sale of ten units that asks for access codes. more are further
// members of the draft.
func (h *fixture) withCodes(kind seckill.AccessCode, more string) string {
	now := time.Now().UTC()
	r := h.as(merchant(), "POST", "/admin/sales", fmt.Sprintf(`{"title":"a kettle","price":1,
		"stock":10,"startAt":%q,"endAt":%q,"accessCode":%q%s}`, now.Add(-time.Minute).Format(time.RFC3339),
		now.Add(time.Hour).Format(time.RFC3339), kind, more))
	require.Equal(h.t, http.StatusCreated, r.Status, r.Body)
	require.Contains(h.t, r.Body, fmt.Sprintf(`"accessCode":%q`, kind))
	goods := dataOf[struct{ GoodsID string }](h.t, r).GoodsID
	h.does(merchant(), "POST", "/admin/sales/"+goods+"/expose", "")
	require.Contains(h.t, h.does(seckill.Actor{}, "GET", "/sales/"+goods, "").Body,
		fmt.Sprintf(`"accessCode":%q`, kind))
	return goods
}

// codes signs codes of a goods that do not end.
func (h *fixture) codes(goods string, kind seckill.AccessCode, count int) []string {
	codes, _, err := accesscode.NewKeys(h.settings.OrderSecrets...).Sign(
		h.id(goods), kind, time.Time{}, count)
	require.NoError(h.t, err)
	return codes
}

func pathWith(goods, code string) string {
	return "/randomPath?goodsId=" + goods + "&code=" + url.QueryEscape(code)
}

func TestCodes_SharedCodesServeEveryBuyer(t *testing.T) {
	h := open(t)
	goods := h.withCodes(seckill.SharedCodes, "")
	code := h.codes(goods, seckill.SharedCodes, 1)[0]
	h.refuses("CODE_REQUIRED", buyer(1), "POST", "/randomPath?goodsId="+goods, "")
	h.refuses("CODE_REQUIRED", buyer(1), "POST", pathWith(goods, ""), "")
	h.refuses("CODE_INVALID", buyer(1), "POST", pathWith(goods, "00000-00000-00000-00001"), "")
	h.refuses("CODE_INVALID", buyer(1), "POST",
		pathWith(goods, h.codes(goods, seckill.SingleCodes, 1)[0]), "")
	h.refuses("CODE_INVALID", buyer(1), "POST", pathWith(goods,
		h.codes(h.exposed("1", "1"), seckill.SharedCodes, 1)[0]), "")
	for id := range int64(3) {
		path := dataOf[struct{ RandomPath string }](t, h.does(buyer(id+1), "POST", "/randomPath",
			`{"goodsId":"`+goods+`","code":"`+code+`"}`)).RandomPath
		require.Equal(t, http.StatusAccepted, h.takes(buyer(id+1), goods, "1", path).Status)
	}
	h.exact(goods, 10, 7, 3)
}

// TestCodes_OneBuyerHasASingleCode lets many buyers use one code at once. One gets in, again and
// again; a cancelled order lets that buyer buy again, and nobody else.
func TestCodes_OneBuyerHasASingleCode(t *testing.T) {
	h := open(t)
	goods := h.withCodes(seckill.SingleCodes, "")
	codes := h.codes(goods, seckill.SingleCodes, 2)
	var winner atomic.Int64
	var all sync.WaitGroup
	var reasons [20]string
	for i := range reasons {
		all.Go(func() {
			id := int64(i + 1)
			r := h.as(buyer(id), "GET", pathWith(goods, codes[0]), "")
			if reasons[i] = r.Reason; r.Status == http.StatusOK {
				winner.Store(id)
			}
		})
	}
	all.Wait()
	counts := map[string]int{}
	for _, reason := range reasons {
		counts[reason]++
	}
	require.Equal(t, map[string]int{"OK": 1, "CODE_USED": 19}, counts)

	who, other := buyer(winner.Load()), buyer(winner.Load()%20+1)
	path := dataOf[struct{ RandomPath string }](t,
		h.does(who, "POST", pathWith(goods, codes[0]), "")).RandomPath
	r := h.takes(who, goods, "1", path)
	require.Equal(t, http.StatusAccepted, r.Status, r.Body)
	sn := dataOf[struct{ OrderSn string }](t, r).OrderSn
	h.becomes(who, sn, "created")
	h.refuses("BAD_PATH", other, "POST", "/"+path+"/decrStock", `{"goodsId":"`+goods+`"}`)
	h.does(who, "POST", "/orders/"+sn+"/cancel", "")
	h.refuses("CODE_USED", other, "POST", pathWith(goods, codes[0]), "")
	h.does(who, "POST", pathWith(goods, codes[0]), "")
	h.does(other, "POST", pathWith(goods, codes[1]), "")
}

// TestCodes_AreRefusedInTheContractsOrder checks 404 and 403 before the sale's state, and that a
// sale that does not sell claims nothing.
func TestCodes_AreRefusedInTheContractsOrder(t *testing.T) {
	h := open(t)
	goods := h.withCodes(seckill.SingleCodes, "")
	code := h.codes(goods, seckill.SingleCodes, 1)[0]
	h.refuses("UNAUTHENTICATED", seckill.Actor{}, "POST", "/randomPath?goodsId="+goods, "")
	h.refuses("FORBIDDEN", merchant(), "POST", pathWith(goods, code), "")
	h.refuses("NOT_FOUND", buyer(1), "POST", pathWith("7", code), "")
	h.refuses("NOT_FOUND", buyer(1), "POST", "/sales/"+goods+"/waiting-room", `{"code":"x"}`)
	h.does(merchant(), "POST", "/admin/sales/"+goods+"/close", "")
	h.refuses("CODE_REQUIRED", buyer(1), "POST", "/randomPath?goodsId="+goods, "")
	h.refuses("CODE_INVALID", buyer(1), "POST", pathWith(goods, "x"), "")
	h.refuses("ENDED", buyer(1), "POST", pathWith(goods, code), "")
	n, err := accesscode.NewKeys(h.settings.OrderSecrets...).Verify(
		code, h.id(goods), seckill.SingleCodes, time.Now())
	require.NoError(t, err)
	owners, err := h.Store.ClaimCodes(t.Context(), h.id(goods),
		[]accesscode.Claim{{Code: n, BuyerID: "2"}}, time.Now())
	require.NoError(t, err)
	require.Equal(t, []string{"2"}, owners, "nobody had claimed it")
}

// TestCodes_AreNeededToJoinAWaitingRoom checks that a code is claimed by joining.
func TestCodes_AreNeededToJoinAWaitingRoom(t *testing.T) {
	t.Parallel()
	h := openIdle(t, 15*time.Minute)
	h.settings.AdmissionTimeout = time.Hour
	h.work()
	goods := h.withCodes(seckill.SingleCodes, `,"admission":"waitingRoom"`)
	room := "/sales/" + goods + "/waiting-room"
	h.eventually(func() bool {
		return h.as(seckill.Actor{}, "GET", room, "").Status == http.StatusOK
	}, "no admitter made the room ready")
	code := h.codes(goods, seckill.SingleCodes, 1)[0]
	h.refuses("CODE_REQUIRED", buyer(1), "POST", room, "")
	h.refuses("CODE_INVALID", buyer(1), "POST", room, `{"code":"x"}`)
	h.does(buyer(1), "POST", room, `{"code":"`+code+`"}`)
	h.does(buyer(1), "POST", room+"?code="+code, "")
	h.refuses("CODE_USED", buyer(2), "POST", room, `{"code":"`+code+`"}`)
	h.eventually(func() bool {
		return h.as(buyer(1), "POST", pathWith(goods, code), "").Status == http.StatusOK
	}, "the buyer was never admitted")
	h.refuses("CODE_REQUIRED", buyer(1), "POST", "/randomPath?goodsId="+goods, "")
}

// TestCodes_RoomThatIsOverClaimsNone checks that a code which a full sale refuses stays free.
func TestCodes_RoomThatIsOverClaimsNone(t *testing.T) {
	h := open(t)
	goods := h.withCodes(seckill.SingleCodes, `,"admission":"waitingRoom"`)
	room := "/sales/" + goods + "/waiting-room"
	h.does(merchant(), "PATCH", "/admin/sales/"+goods, `{"stockDelta":-10}`)
	h.eventually(func() bool {
		return strings.Contains(h.as(seckill.Actor{}, "GET", room, "").Body, `"phase":"over"`)
	}, "the room is never over")
	code := h.codes(goods, seckill.SingleCodes, 1)[0]
	h.refuses("SOLD_OUT", buyer(1), "POST", room, `{"code":"`+code+`"}`)
	h.refuses("SOLD_OUT", buyer(2), "POST", room, `{"code":"`+code+`"}`)
	h.does(merchant(), "PATCH", "/admin/sales/"+goods, `{"stockDelta":1}`)
	h.eventually(func() bool {
		return h.as(buyer(2), "POST", room, `{"code":"`+code+`"}`).Status == http.StatusOK
	}, "a refused buyer keeps the code")
	h.refuses("CODE_USED", buyer(1), "POST", room, `{"code":"`+code+`"}`)
}

// TestCodes_SurviveTheLossOfRedis empties Redis: the rebuilt sale asks for codes, and a claimed
// code stays its buyer's.
func TestCodes_SurviveTheLossOfRedis(t *testing.T) {
	h := open(t)
	goods := h.withCodes(seckill.SingleCodes, "")
	codes := h.codes(goods, seckill.SingleCodes, 2)
	h.does(buyer(1), "POST", pathWith(goods, codes[0]), "")
	require.NoError(t, h.Redis.FlushAll(t.Context()).Err())
	h.eventually(func() bool {
		return h.as(buyer(1), "POST", pathWith(goods, codes[0]), "").Status == http.StatusOK
	}, "the sale was never rebuilt")
	h.refuses("CODE_REQUIRED", buyer(2), "POST", "/randomPath?goodsId="+goods, "")
	h.refuses("CODE_USED", buyer(2), "POST", pathWith(goods, codes[0]), "")
	h.does(buyer(2), "POST", pathWith(goods, codes[1]), "")
}

// TestCodes_ChangeInADraftOnly checks the field and its bad values.
func TestCodes_ChangeInADraftOnly(t *testing.T) {
	h := open(t)
	goods := h.draft("5", "1")
	sale := "/admin/sales/" + goods
	require.Contains(t, h.does(merchant(), "GET", sale, "").Body, `"accessCode":"none"`)
	r := h.does(merchant(), "PATCH", sale, `{"accessCode":"shared"}`)
	require.Contains(t, r.Body, `"accessCode":"shared"`)
	require.Contains(t, h.does(merchant(), "GET", sale+"/audit", "").Body, `"accessCode":"shared"`)
	for _, bad := range []string{`"secret"`, `""`, `1`, `null`, `true`} {
		h.refuses("BAD_REQUEST", merchant(), "PATCH", sale, `{"accessCode":`+bad+`}`)
	}
	h.does(merchant(), "POST", sale+"/expose", "")
	h.refuses("CONFLICT", merchant(), "PATCH", sale, `{"accessCode":"none"}`)
	h.does(merchant(), "PATCH", sale, `{"perBuyerLimit":2}`)
	h.refuses("CODE_REQUIRED", buyer(1), "POST", "/randomPath?goodsId="+goods, "")
}
