package httpapi_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/testing/badrequests"
)

// The people of the tests.
func buyer() seckill.Actor {
	return seckill.Actor{ID: 7, Role: seckill.Buyer, Name: "Ann Lee", Phone: "+4479460123456"}
}
func otherBuyer() seckill.Actor    { return seckill.Actor{ID: 8, Role: seckill.Buyer} }
func merchant() seckill.Actor      { return seckill.Actor{ID: 70, Role: seckill.Merchant} }
func otherMerchant() seckill.Actor { return seckill.Actor{ID: 80, Role: seckill.Merchant} }
func operator() seckill.Actor      { return seckill.Actor{ID: 1, Role: seckill.Operator} }

const longID = 9007199254740993 // 2^53+1: a double would round it

// sell puts an ongoing sale of ten units into the fake.
func (h *fixture) sell(id int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sales[id] = seckill.Sale{
		GoodsID: id, MerchantID: merchant().ID, Title: "A phone", Price: 199900, Total: 10, Stock: 10, PerBuyerLimit: 1000,
		StartAt: h.now.Add(-time.Minute), EndAt: h.now.Add(time.Hour), Rate: seckill.DefaultRate(), Status: seckill.Exposed,
		CreatedAt: h.now, UpdatedAt: h.now,
	}
}

func (h *fixture) order(sn string, goods int64, who seckill.Actor) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.orders[sn] = order.Order{
		OrderLine: reservation.OrderLine{OrderSn: sn, BuyerID: who.ID, Quantity: 2, Name: who.Name, Phone: who.Phone},
		GoodsID:   goods, Status: order.Created, Amount: 399800, CreatedAt: h.now, PayBy: h.now.Add(15 * time.Minute),
	}
}

func (h *fixture) fixture() badrequests.Fixture {
	h.sell(longID)
	h.sell(43)
	h.order("order-1", longID, buyer())
	path := strings.Repeat("0a", 16)
	h.paths[pathKey(longID, buyer().ID, path)] = ""
	return badrequests.Fixture{
		Secret: secret, Buyer: buyer(), OtherBuyer: otherBuyer(), Merchant: merchant(), OtherMerchant: otherMerchant(),
		GoodsID: longID, OtherGoods: 43, NoGoods: 44, OrderSn: "order-1", Path: path,
	}
}

// reply is an answer, taken apart.
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

func (r reply) into(h *fixture, v any) { require.NoError(h.t, json.Unmarshal(r.Data, v), r.raw) }

// ask sends a request as somebody (nil is nobody) and takes the answer apart. Header fields come in pairs.
func (h *fixture) ask(who *seckill.Actor, method, target, body string, header ...string) reply {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), method, h.url+target, strings.NewReader(body))
	require.NoError(h.t, err)
	if who != nil {
		token, err := h.tokens.Sign(*who, time.Hour)
		require.NoError(h.t, err)
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	res, err := h.client.Do(req)
	require.NoError(h.t, err)
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	require.NoError(h.t, err)
	r := reply{Status: res.StatusCode, Header: res.Header, raw: string(raw)}
	if method != http.MethodHead {
		require.NoError(h.t, json.Unmarshal(raw, &r), string(raw))
	}
	return r
}

func (h *fixture) token(who seckill.Actor) string {
	h.t.Helper()
	token, err := h.tokens.Sign(who, time.Hour)
	require.NoError(h.t, err)
	return token
}

// csv asks for a list as a file.
func (h *fixture) csv(who seckill.Actor, target string) string {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), http.MethodGet, h.url+target, nil)
	require.NoError(h.t, err)
	req.Header.Set("Authorization", "Bearer "+h.token(who))
	res, err := h.client.Do(req)
	require.NoError(h.t, err)
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	require.NoError(h.t, err)
	require.Contains(h.t, res.Header.Get("Content-Type"), "text/csv")
	return string(raw)
}

func (h *fixture) as(who seckill.Actor, method, target, body string, header ...string) reply {
	h.t.Helper()
	return h.ask(&who, method, target, body, header...)
}

func text(id int64) string { return strconv.FormatInt(id, 10) }
