package client_test

import (
	"encoding/json"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/client"
	"flashsale.dev/seckill/internal/auth"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/apicheck"
	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/must"
)

// TestClient_SellsBuysAndPays creates a sale, buys from it and pays, with generated calls only, at
// a running standalone. Each round trip must also be in the document.
func TestClient_SellsBuysAndPays(t *testing.T) {
	data := t.TempDir()
	p := installation.StartProgram(t, "standalone", "SECKILL_HTTP_ADDR", nil, "-data", data)
	secret := must.Get(os.ReadFile(filepath.Join(data, "jwt-secret")))(t)
	tokens := must.Get(auth.New(secret, 0, time.Now))(t)
	as := func(role seckill.Role, id string) *client.ClientWithResponses {
		token := must.Get(tokens.Sign(seckill.Actor{ID: id, Role: role}, time.Hour))(t)
		return must.Get(client.NewClientWithResponses("http://"+p.Addr, client.WithBearer(token),
			client.WithHTTPClient(apicheck.Client(t, &http.Client{Timeout: time.Minute}))))(t)
	}
	ctx, merchant, buyer := t.Context(), as(seckill.Merchant, "70"), as(seckill.Buyer, "7")

	now := time.Now().UTC()
	created := must.Get(merchant.CreateSaleWithResponse(ctx, nil, client.NewSale{
		Title: "a kettle", Price: 1990, Stock: 1, StartAt: now.Add(-time.Minute),
		EndAt: now.Add(time.Hour),
	}))(t)
	require.NotNil(t, created.JSON201, "%s", created.Body)
	goods := created.JSON201.Data.GoodsID
	exposed := must.Get(merchant.ExposeSaleWithResponse(ctx, goods))(t)
	require.NotNil(t, exposed.JSON200, "%s", exposed.Body)
	shown := must.Get(buyer.ShowSaleWithResponse(ctx, goods))(t)
	require.NotNil(t, shown.JSON200, "%s", shown.Body)
	require.Equal(t, client.PhaseOngoing, shown.JSON200.Data.Phase)

	path := must.Get(buyer.IssuePathWithResponse(ctx, &client.IssuePathParams{GoodsID: &goods}))(t)
	require.NotNil(t, path.JSON200, "%s", path.Body)
	bought := must.Get(buyer.DecrStockWithResponse(ctx, path.JSON200.Data.RandomPath,
		&client.DecrStockParams{GoodsID: &goods}))(t)
	require.NotNil(t, bought.JSON202, "%s", bought.Body)
	order := bought.JSON202.Data.OrderSn
	require.Eventually(t, func() bool {
		found, err := buyer.FindOrderWithResponse(ctx, order)
		return err == nil && found.JSON200 != nil &&
			found.JSON200.Data.Status == client.OrderStatusCreated
	}, time.Minute, 20*time.Millisecond)
	paid := must.Get(buyer.PayOrderWithResponse(ctx, order))(t)
	require.NotNil(t, paid.JSON200, "%s", paid.Body)
	require.Equal(t, client.OrderStatusPaid, paid.JSON200.Data.Status)
	require.Equal(t, int64(1990), paid.JSON200.Data.Amount)

	refused := must.Get(as(seckill.Buyer, "8").IssuePathWithResponse(ctx,
		&client.IssuePathParams{GoodsID: &goods}))(t)
	require.NotNil(t, refused.JSON409, "%s", refused.Body)
	require.Equal(t, client.ReasonSOLDOUT, refused.JSON409.Reason)
	listed := must.Get(merchant.ListOrdersOfSaleWithResponse(ctx, goods, nil))(t)
	require.NotNil(t, listed.JSON200, "%s", listed.Body)
	require.Len(t, listed.JSON200.Data.Items, 1)
	require.Equal(t, order, listed.JSON200.Data.Items[0].OrderSn)
}

// TestClient_LosesNoAnswerForHeaders checks that an answer keeps its status and body, whatever a
// proxy has made of its headers, and reads each form of Retry-After.
func TestClient_LosesNoAnswerForHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		date := func(in time.Duration) string {
			return time.Now().Add(in).UTC().Format(http.TimeFormat)
		}
		for sent, wanted := range map[string]client.RetryAfter{
			"3": 3, date(time.Hour): 3600, date(-time.Hour): 0, "-5": 0, "1.5": 0, "soon": 0, "": 0,
			"99999999999999999999999":       math.MaxInt32,
			"Fri, 31 Dec 9999 23:59:59 GMT": math.MaxInt32,
		} {
			answer, err := client.ParseFindOrderResponse(&http.Response{
				StatusCode: http.StatusServiceUnavailable,
				Header:     http.Header{"Retry-After": {sent}, "X-Request-Id": {""}},
				Body:       io.NopCloser(strings.NewReader("<h1>later</h1>")),
			})
			require.NoError(t, err, sent)
			require.Equal(t, http.StatusServiceUnavailable, answer.StatusCode(), sent)
			require.Equal(t, "<h1>later</h1>", string(answer.Body), sent)
			require.Equal(t, wanted, answer.Headers503.RetryAfter, sent)
		}
	})
}

// TestRate_IsReadAndWrittenUnchanged checks that a program which reads a rate and sends it back
// does not change it.
func TestRate_IsReadAndWrittenUnchanged(t *testing.T) {
	const sent = `{"maxBurstSeconds":0.123456789,"permitsPerSecond":123456.789}`
	var rate client.Rate
	require.NoError(t, json.Unmarshal([]byte(sent), &rate))
	require.Equal(t, sent, string(must.Get(json.Marshal(rate))(t)))
}

// TestClient_HasNoEventStream checks that no generated call reads a body that has no end.
func TestClient_HasNoEventStream(t *testing.T) {
	document, streams := must.Get(apicheck.Load())(t), 0
	for id, call := range document.Calls() {
		response := call.Operation.Responses.Status(http.StatusOK)
		if response == nil || response.Value.Content["text/event-stream"] == nil {
			continue
		}
		streams++
		_, found := reflect.TypeFor[*client.Client]().MethodByName(strings.ToUpper(id[:1]) + id[1:])
		require.False(t, found, id)
	}
	require.NotZero(t, streams)
}
