package httpapi_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/badrequests"
	"flashsale.dev/seckill/internal/testing/must"
)

// These are the users of the tests.
func buyer() actor {
	return actor{ID: 7, Role: seckill.Buyer, Name: "Ann Lee", Phone: "+4479460123456"}
}
func otherBuyer() actor    { return actor{ID: 8, Role: seckill.Buyer} }
func merchant() actor      { return actor{ID: 70, Role: seckill.Merchant} }
func otherMerchant() actor { return actor{ID: 80, Role: seckill.Merchant} }
func operator() actor      { return actor{ID: 1, Role: seckill.Operator} }

const longID = 9007199254740993 // 2^53+1: a double would round it

// sell puts an ongoing sale of ten units into the fake. A test may change the sale.
func (h *fixture) sell(id int64, changes ...func(s *sale)) {
	defer h.lock()()
	s := sale{
		GoodsID: id, MerchantID: merchant().ID, Title: "A phone", Price: 199900, Total: 10,
		Stock: 10, PerBuyerLimit: 1000, StartAt: h.now.Add(-time.Minute),
		EndAt: h.now.Add(time.Hour), Rate: seckill.DefaultRate(), Status: seckill.Exposed,
		CreatedAt: h.now, UpdatedAt: h.now,
	}
	for _, change := range changes {
		change(&s)
	}
	h.sales[id] = s
}

func (h *fixture) order(sn string, goods int64, who actor) {
	defer h.lock()()
	h.orders[sn] = newOrder(sn, goods, who, 2, 199900, h.now)
}

func (h *fixture) fixture() badrequests.Fixture {
	h.sell(longID)
	h.sell(43)
	h.order("order-1", longID, buyer())
	path := strings.Repeat("0a", 16)
	h.paths[pathKey(longID, buyer().ID, path)] = ""
	return badrequests.Fixture{
		Secret: secret, Buyer: buyer(), OtherBuyer: otherBuyer(),
		Merchant: merchant(), OtherMerchant: otherMerchant(),
		GoodsID: longID, OtherGoods: 43, NoGoods: 44, OrderSn: "order-1", Path: path,
	}
}

// reply is a response in the API's common JSON shape.
type reply struct {
	Status    int
	Header    http.Header
	Code      int             `json:"code"`
	Reason    string          `json:"reason"`
	Message   string          `json:"message"`
	Data      json.RawMessage `json:"data"`
	RequestID string          `json:"requestId"`
	raw       string
}

// dataOf decodes a reply's data.
func dataOf[T any](h *fixture, r reply) (data T) {
	h.t.Helper()
	require.NoError(h.t, json.Unmarshal(r.Data, &data), r.raw)
	return data
}

// do sends a request and reads the response. Header fields come in pairs.
func (h *fixture) do(method, target, body string, header ...string) (*http.Response, string) {
	h.t.Helper()
	req := must.Get(http.NewRequestWithContext(
		h.t.Context(), method, h.url+target, strings.NewReader(body)))(h.t)
	for i := 0; i < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	res := must.Get(h.client.Do(req))(h.t)
	defer func() { _ = res.Body.Close() }()
	return res, string(must.Get(io.ReadAll(res.Body))(h.t))
}

// ask sends a request without a token.
func (h *fixture) ask(method, target, body string, header ...string) reply {
	h.t.Helper()
	res, raw := h.do(method, target, body, header...)
	r := reply{Status: res.StatusCode, Header: res.Header, raw: raw}
	if method != http.MethodHead {
		require.NoError(h.t, json.Unmarshal([]byte(raw), &r), raw)
	}
	return r
}

// as sends a request with a user's token.
func (h *fixture) as(who actor, method, target, body string, header ...string) reply {
	h.t.Helper()
	return h.ask(method, target, body, append(header, "Authorization", h.bearer(who))...)
}

// want fails the test if a reply has another status.
func (h *fixture) want(status int, r reply) reply {
	h.t.Helper()
	require.Equal(h.t, status, r.Status, r.raw)
	return r
}

// bearer returns a user's Authorization header.
func (h *fixture) bearer(who actor) string {
	h.t.Helper()
	return "Bearer " + must.Get(h.tokens.Sign(who, 24*time.Hour))(h.t)
}

func text(id int64) string { return strconv.FormatInt(id, 10) }
