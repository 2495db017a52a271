package app_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/apikey"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
)

// TestAudit_HasKeysLimitersAndDeadLetters checks that the audit log has each change by hand that no
// change of a sale, an order or a webhook records. The merchant sees those of the merchant's own.
func TestAudit_HasKeysLimitersAndDeadLetters(t *testing.T) {
	h := open(t)
	goods, k := h.exposed("5", "1"), h.newKey(merchant().ID, apikey.SalesRead)
	h.does(operator(), "DELETE", "/admin/api-keys/"+k.ID, "")
	limiter := "/admin/limiters/randomPath/" + goods
	h.does(operator(), "PUT", limiter, `{"permitsPerSecond":7}`)
	h.does(operator(), "PATCH", limiter, `{"maxBurstSeconds":2}`)
	h.does(operator(), "DELETE", limiter, "")
	h.does(operator(), "PUT", "/admin/limiters/session/*", `{"permitsPerSecond":7}`)
	const id = "01a1fc15-9a10-78e6-83a6-b45fac893a06"
	require.NoError(t, h.Store.AddDeadLetter(t.Context(), order.DeadLetter{
		ID: id, Reason: order.FailedMalformed, Attempts: 1, FirstSeenAt: time.Now(), Origin: "q",
	}))
	h.does(operator(), "DELETE", "/admin/dead-letters/"+id, "")
	// A refused change is none.
	for _, body := range []string{`{"permitsPerSecond":-1}`, `{"x":1}`} {
		require.Equal(t, "BAD_REQUEST", h.as(operator(), "PUT", limiter, body).Reason)
	}

	type entry struct {
		ActorID, ActorRole, Action string
		From, To                   map[string]any
	}
	log := func(who seckill.Actor) []entry {
		r := h.does(who, "GET", "/admin/audit?limit=100", "")
		return dataOf[struct{ Items []entry }](t, r).Items
	}
	name := "randomPath/" + goods
	want := []entry{
		{"1", "operator", "discardOrder", nil, map[string]any{"orderSn": "", "deadLetterId": id}},
		{"1", "operator", "setLimiter", map[string]any{"permitsPerSecond": 20.0}, map[string]any{
			"limiter": "session/*", "permitsPerSecond": 7.0,
		}},
		{"1", "operator", "deleteLimiter", map[string]any{
			"algorithm": "reserve", "permitsPerSecond": 7.0, "maxBurstSeconds": 2.0,
			"maxWaitMillis": 1000.0,
		}, map[string]any{"limiter": name}},
		{"1", "operator", "setLimiter", map[string]any{"maxBurstSeconds": 1.0}, map[string]any{
			"limiter": name, "maxBurstSeconds": 2.0,
		}},
		{"1", "operator", "setLimiter", map[string]any{"permitsPerSecond": 1000.0}, map[string]any{
			"limiter": name, "permitsPerSecond": 7.0,
		}},
		{"1", "operator", "revokeApiKey", nil, map[string]any{
			"apiKeyId": k.ID, "ownerId": "70", "name": "stock system",
		}},
		{"1", "operator", "createApiKey", nil, map[string]any{
			"apiKeyId": k.ID, "ownerId": "70", "name": "stock system",
			"scopes": []any{"sales:read"},
		}},
	}
	for i := range want {
		if want[i].From == nil {
			want[i].From = map[string]any{}
		}
	}
	all := log(operator())
	require.Equal(t, want, all[:len(want)])
	require.Equal(t, want[2:], log(merchant())[:len(want)-2], "the merchant's own")
	another := merchant()
	another.ID = "71"
	require.Empty(t, log(another))
}
