package sqlstore

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/accesscode"
	"flashsale.dev/seckill/internal/seckill/salechange"
	"flashsale.dev/seckill/internal/testing/must"
)

// TestClaimCodes_AreTheirFirstBuyersForEver checks the owner of a code for its buyer again, for
// another buyer, within one call, and for another goods.
func (h fixture) TestClaimCodes_AreTheirFirstBuyersForEver(t *testing.T) {
	one, other := h.exposed(1, 1).GoodsID, h.exposed(1, 1).GoodsID
	claim := func(goodsID int64, claims ...accesscode.Claim) []string {
		return must.Get(h.ClaimCodes(t.Context(), goodsID, claims, today))(t)
	}
	require.Equal(t, []string{"ann"}, claim(one, accesscode.Claim{Code: 7, BuyerID: "ann"}))
	require.Equal(t, []string{"ann"},
		claim(one, accesscode.Claim{Code: 7, BuyerID: "ann"}), "again")
	require.Equal(t, []string{"ann"}, claim(one, accesscode.Claim{Code: 7, BuyerID: "bob"}))
	require.Equal(t, []string{"bob"}, claim(other, accesscode.Claim{Code: 7, BuyerID: "bob"}))
	largest := accesscode.Number(1<<52 - 1)
	require.Equal(t, []string{"cid", "ann", "cid", "dan"}, claim(one,
		accesscode.Claim{Code: largest, BuyerID: "cid"}, accesscode.Claim{Code: 7, BuyerID: "cid"},
		accesscode.Claim{Code: largest, BuyerID: "dan"}, accesscode.Claim{Code: 3, BuyerID: "dan"}))
}

// TestClaimCodes_ConcurrentBuyersAgreeOnTheOwner lets many buyers claim the same codes at once, in
// different orders: every call of a code must return the same owner, and none may fail.
func (h fixture) TestClaimCodes_ConcurrentBuyersAgreeOnTheOwner(t *testing.T) {
	const buyers, codes = 8, 40
	id := h.exposed(1, 1).GoodsID
	owners := make([][]string, buyers)
	var all sync.WaitGroup
	for b := range buyers {
		all.Go(func() {
			claims := make([]accesscode.Claim, codes)
			for i := range claims { // each buyer begins elsewhere
				claims[i] = accesscode.Claim{
					Code:    accesscode.Number(1 + (i*7+b*11)%codes),
					BuyerID: fmt.Sprint("buyer", b),
				}
			}
			got, err := h.ClaimCodes(t.Context(), id, claims, today)
			if err != nil {
				owners[b] = []string{err.Error()}
				return
			}
			owners[b] = make([]string, codes+1)
			for i, c := range claims {
				owners[b][c.Code] = got[i]
			}
		})
	}
	all.Wait()
	for b := range buyers {
		require.Equal(t, owners[0], owners[b])
	}
	require.NotContains(t, owners[0][1:], "")
}

// TestSale_KeepsItsAccessCode stores the kind with the draft and with a change of it.
func (h fixture) TestSale_KeepsItsAccessCode(t *testing.T) {
	sale := newSale(5, 1).Draft("1", today)
	sale.AccessCode = seckill.SingleCodes
	must.Get(h.CreateSale(t.Context(), sale, noKey))(t)
	require.Equal(t, seckill.SingleCodes, must.Get(h.Sale(t.Context(), sale.GoodsID))(t).AccessCode)
	kind := seckill.SharedCodes
	h.mustChange(sale.GoodsID, salechange.Change{AccessCode: &kind})
	require.Equal(t, kind, must.Get(h.Sale(t.Context(), sale.GoodsID))(t).AccessCode)
	require.Equal(t, seckill.NoCodes, h.exposed(1, 1).AccessCode)
}
