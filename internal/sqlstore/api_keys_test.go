package sqlstore

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/apikey"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/salechange"
	"flashsale.dev/seckill/internal/testing/must"
)

// storeAt is a store with a fixed clock.
type storeAt struct {
	*Store
	now time.Time
}

func (s storeAt) Now(context.Context) (time.Time, error) { return s.now, nil }

func (h fixture) addAPIKey(merchantID, name string, now time.Time) apikey.Key {
	h.t.Helper()
	service := apikey.Service{Store: storeAt{h.Store, now}}
	k, _, err := service.Create(h.t.Context(), seckill.Actor{ID: "1", Role: seckill.Operator},
		apikey.NewKey{MerchantID: merchantID, Name: name, Scopes: apikey.Scopes()})
	require.NoError(h.t, err)
	return k
}

// TestAPIKeys_AreStoredWithTheirHash checks that every field comes back, and that lists page by id.
func (h fixture) TestAPIKeys_AreStoredWithTheirHash(t *testing.T) {
	ctx := t.Context()
	first := h.addAPIKey("auth0|A", "Überträger 🎁", today)
	second := h.addAPIKey("auth0|A", "b", today)
	other := h.addAPIKey("auth0|a", "c", today)
	found := must.Get(h.APIKeysByID(ctx, []string{first.ID, other.ID, "none"}))(t)
	require.ElementsMatch(t, []apikey.Key{first, other}, found)
	page := must.Get(h.APIKeys(ctx, "auth0|A", "", 1))(t)
	require.Equal(t, []apikey.Key{second}, page)
	page = must.Get(h.APIKeys(ctx, "auth0|A", second.ID, 5))(t)
	require.Equal(t, []apikey.Key{first}, page)
	require.Len(t, must.Get(h.APIKeys(ctx, "", "", 5))(t), 3)
	require.Equal(t, 2, must.Get(h.CountAPIKeys(ctx, "auth0|A"))(t))
}

// TestAPIKeys_RevokeOnce checks that a revocation stays as it was first made.
func (h fixture) TestAPIKeys_RevokeOnce(t *testing.T) {
	ctx, k := t.Context(), h.addAPIKey("70", "erp", today)
	require.NoError(t, h.RevokeAPIKey(ctx, k.ID, "70", today))
	require.NoError(t, h.RevokeAPIKey(ctx, k.ID, "1", today.Add(time.Hour)))
	require.NoError(t, h.RevokeAPIKey(ctx, "none", "1", today))
	k.RevokedAt, k.RevokedBy = today, "70"
	require.Equal(t, []apikey.Key{k}, must.Get(h.APIKeysByID(ctx, []string{k.ID}))(t))
	require.Zero(t, must.Get(h.CountAPIKeys(ctx, "70"))(t))
}

// TestAudit_HasAPIKeys checks that the owner finds a key's creation and its one revocation in the
// audit log, also one by an operator. Another merchant does not.
func (h fixture) TestAudit_HasAPIKeys(t *testing.T) {
	k := h.addAPIKey("audited", "erp", today)
	by := seckill.WithActor(t.Context(), seckill.Actor{ID: "1", Role: seckill.Operator})
	for range 2 {
		require.NoError(t, h.RevokeAPIKey(by, k.ID, "1", today))
	}
	of := func(merchant string) []salechange.AuditEntry {
		return must.Get(h.AuditTrail(t.Context(),
			salechange.AuditFilter{MerchantID: merchant}, "", 9))(t)
	}
	log := of("audited")
	require.Len(t, log, 2)
	for i, action := range []salechange.Action{
		salechange.ActRevokeAPIKey, salechange.ActCreateAPIKey,
	} {
		require.Equal(t, action, log[i].Action)
		require.Equal(t, k.ID, log[i].Became["apiKeyId"])
		require.Equal(t, "erp", log[i].Became["name"])
	}
	require.Equal(t, "1", log[0].ActorID)
	require.Empty(t, of("audite"))
}

// TestAuditLimiter_BelongsToTheSale checks that the merchant of a limited sale sees the operator's
// entry, and that the entry of another limiter is the operators' own.
func (h fixture) TestAuditLimiter_BelongsToTheSale(t *testing.T) {
	sale := h.exposed(9, 5)
	by := seckill.WithActor(t.Context(), seckill.Actor{ID: "1", Role: seckill.Operator})
	was, became := map[string]any{"burst": 1.0}, map[string]any{"limiter": "x/y"}
	for _, goodsID := range []int64{sale.GoodsID, 0} {
		require.NoError(t,
			h.AuditLimiter(by, salechange.ActSetLimiter, goodsID, was, became, today))
	}
	for merchant, n := range map[string]int{"": 2, sale.MerchantID: 1, "nobody": 0} {
		log := must.Get(h.AuditTrail(t.Context(), salechange.AuditFilter{
			MerchantID: merchant, Action: salechange.ActSetLimiter,
		}, "", 9))(t)
		require.Len(t, log, n, merchant)
		for _, e := range log {
			require.Equal(t, was, e.Was)
			require.Equal(t, became, e.Became)
		}
	}
}

// TestAPIKeys_LastUseNeverGoesBack checks that a node whose clock lags does not undo a later use.
func (h fixture) TestAPIKeys_LastUseNeverGoesBack(t *testing.T) {
	ctx, k := t.Context(), h.addAPIKey("70", "erp", today)
	unused := h.addAPIKey("70", "crm", today)
	for _, after := range []time.Duration{time.Minute, time.Hour, time.Second} {
		require.NoError(t, h.UseAPIKeys(ctx, []string{k.ID, "none"}, today.Add(after)))
	}
	k.LastUsedAt = today.Add(time.Hour)
	require.Equal(t, []apikey.Key{unused, k}, must.Get(h.APIKeys(ctx, "70", "", 9))(t))
}

// TestAudit_NamesTheAPIKey checks that changes by a key have its name in the audit log, also a cut
// that another process ends. A person's changes have none.
func (h fixture) TestAudit_NamesTheAPIKey(t *testing.T) {
	k := h.addAPIKey("70", "erp", today)
	ctx, sale := seckill.WithActor(t.Context(), k.Actor()), h.exposed(9, 5)
	must.Get(h.Change(ctx, sale.GoodsID, salechange.Change{PerBuyerLimit: new(int64(4))},
		salechange.IdempotencyKey{}, today))(t)
	must.Get(h.Change(ctx, sale.GoodsID, salechange.Change{StockDelta: -1},
		salechange.IdempotencyKey{}, today))(t)
	cuts := must.Get(h.OpenCuts(t.Context(), today.Add(1e9), "", 10))(t)
	require.Len(t, cuts, 1)
	_, _, err := h.EndCut(t.Context(), cuts[0], order.MoveApplied, today)
	require.NoError(t, err)
	log := h.auditOf(sale.GoodsID, 10)
	names := make([]string, len(log))
	for i, e := range log {
		names[i] = fmt.Sprint(e.Action, " ", e.ActorID, " ", e.APIKey)
	}
	by := fmt.Sprintf("change 70 {%s erp}", k.ID)
	require.Equal(t, []string{by, by}, names[:2])
	require.NotContains(t, fmt.Sprint(names[2:]), "erp")
}
