package faults

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/loadgen/apiclient"
	"flashsale.dev/seckill/internal/order"
)

// everyAPISells wants each API to sell by itself once all is well, over the queue that the rush went over. One that lost its way to a server
// for good does not show in a rush: its buyers ask again elsewhere, and the consumers relay what it took.
func (s *scene) everyAPISells(t *testing.T) {
	t.Helper()
	goods := s.saleOfSameQueue(t)
	for i := range s.APIs {
		c := s.Buyer(t, 1<<43+int64(i))
		c.Base = s.Base(i)
		s.sellsOne(t, c, goods)
		c.HTTP.CloseIdleConnections()
	}
	require.EqualValues(t, len(s.APIs), s.Drained(t, goods, patience).Sold)
}

// saleOfSameQueue puts up a sale whose orders go through the same queue.
func (s *scene) saleOfSameQueue(t *testing.T) string {
	t.Helper()
	queue := order.Shard(number(t, s.goods), s.queue)
	for {
		if goods := s.PutUp(t, int64(len(s.APIs)), 1); order.Shard(number(t, goods), s.queue) == queue {
			return goods
		}
	}
}

// sellsOne has a buyer ask one API for a unit until it is promised.
func (s *scene) sellsOne(t *testing.T, c apiclient.Client, goods string) {
	t.Helper()
	var said apiclient.Answer
	var err error
	for began := time.Now(); time.Since(began) < patience; time.Sleep(20 * time.Millisecond) {
		var grant struct{ RandomPath string }
		said, err = c.Call(t.Context(), http.MethodPost, "/randomPath?goodsId="+goods, nil)
		if err == nil && said.Into(&grant) == nil {
			said, err = c.Call(t.Context(), http.MethodPost, "/"+grant.RandomPath+"/decrStock?goodsId="+goods, nil)
		}
		if err == nil && said.Status == http.StatusAccepted {
			return
		}
	}
	t.Errorf("%s sells nothing any more: %d %s %s %v", c.Base, said.Status, said.Reason, said.Message, err)
}
