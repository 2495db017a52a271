package faults

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/test/faults/check"
)

// toldLost has a buyer ask for an order of epoch 1 that nobody has, until told that it failed, and returns its message,
// which may come later: what was said must hold then.
func (s *scene) toldLost(t *testing.T, buyer int64) []byte {
	t.Helper()
	asked := time.Now()
	body := s.message(t, s.goodsID(t), seckill.OrderLine{BuyerID: buyer, Quantity: 1})
	m, err := order.Decode(body)
	require.NoError(t, err)
	sn := m.Orders[0].OrderSn
	c := s.Buyer(t, buyer)
	defer c.HTTP.CloseIdleConnections()
	var got struct{ Status, FailureReason string }
	for began := time.Now(); got.Status != "failed"; s.lasts(20 * time.Millisecond) {
		err := c.Do(t.Context(), http.MethodGet, "/orders/"+sn, nil, &got)
		require.Less(t, time.Since(began), patience, "%+v %v", got, err)
	}
	require.Equal(t, "LOST", got.FailureReason)
	s.planted = append(s.planted, check.Buyer{
		ID: buyer, Paths: 1, Seen: []string{got.Status},
		Heard: []check.Promise{{Path: "held back", OrderSn: sn, Asked: asked, At: time.Now()}},
	})
	return body
}
