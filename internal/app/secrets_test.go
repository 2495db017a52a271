package app_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill"
)

// TestSecrets_StayOutOfLogsAndStores makes, uses and rotates a webhook's secret, signs in with a
// session, presents access codes, and sends each secret in wrong places. The log has every level.
// Neither it nor Redis, the messages or the database's files may have a secret. The endpoint's id
// in the log, and its path in the database, prove that the test read each place.
func TestSecrets_StayOutOfLogsAndStores(t *testing.T) {
	h := open(t)
	var mu sync.Mutex
	var signatures []string
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if signatures = append(signatures, r.Header.Get("Webhook-Signature")); len(signatures) == 1 {
			w.WriteHeader(http.StatusInternalServerError) // the delivery is repeated
		}
	}))
	t.Cleanup(receiver.Close)

	type endpoint struct{ ID, Secret string }
	body := fmt.Sprintf(`{"url":"%s/events-for-tests"}`, receiver.URL)
	r := h.as(merchant(), "POST", "/admin/webhooks", body)
	require.Equal(t, http.StatusCreated, r.Status, r.Body)
	made := dataOf[endpoint](t, r)
	hook := "/admin/webhooks/" + made.ID
	rotated := dataOf[endpoint](t, h.does(merchant(), "PATCH", hook, `{"rotateSecret":true}`))
	require.NotEqual(t, made.Secret, rotated.Secret)
	goods := h.withCodes(seckill.SingleCodes, "")
	code := h.codes(goods, seckill.SingleCodes, 1)[0]
	h.does(buyer(1), "POST", pathWith(goods, code), "")
	h.refuses("CODE_USED", buyer(2), "POST", pathWith(goods, code), "")
	token := h.request(buyer(3), "GET", "/", "").Header.Get("Authorization")[len("Bearer "):]
	h.does(seckill.Actor{}, "POST", "/session", `{"token":"`+token+`"}`)

	secrets := []string{made.Secret, rotated.Secret, code, token, string(secret)}
	for _, s := range secrets {
		for _, target := range []string{
			"/randomPath?goodsId=" + s, "/" + s + "/decrStock", "/orders/" + s, "/sales/" + s,
			"/admin/webhooks/" + s, "/admin/webhooks?cursor=" + s, "/" + s + "?" + s + "=1",
		} {
			target = strings.NewReplacer(" ", "%20", "+", "%2B").Replace(target)
			h.as(merchant(), "GET", target, "", "Cookie", "session="+s)
			h.as(merchant(), "POST", target, `{"`+s+`":1}`, "Idempotency-Key", s)
		}
		h.as(seckill.Actor{}, "GET", "/orders", "", "Authorization", "Bearer "+s+"x")
		h.as(merchant(), "PATCH", hook, `{"url":"`+s+`"}`)
		h.as(seckill.Actor{}, "POST", "/payments/callback", `{"paymentId":"`+s+`"}`)
	}
	h.eventually(func() bool { mu.Lock(); defer mu.Unlock(); return len(signatures) >= 2 },
		"no delivery was repeated")
	mu.Lock()
	require.Len(t, strings.Fields(signatures[0]), 2, "both secrets sign")
	mu.Unlock()

	log, files := h.textOf(h.log), h.files()
	require.Contains(t, log, made.ID)
	require.Contains(t, log, "level=DEBUG")
	require.Contains(t, files, "events-for-tests")
	for _, s := range append(secrets, strings.TrimPrefix(made.Secret, "whsec_")) {
		for place, all := range map[string]string{
			"log": log, "Redis": h.everything(), "messages": h.textOf(h.messages), "files": files,
		} {
			require.False(t, strings.Contains(all, s), "the %s has %s", place, s)
		}
	}
}
