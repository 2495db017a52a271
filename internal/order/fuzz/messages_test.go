// The targets are not in the package of order: its other tests import the databases, and compiling
// those for fuzzing takes minutes.
package fuzz

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order/message"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/userid"
)

// FuzzDecode checks that every message decodes to the orders of one goods or to a barrier, or is
// rejected as malformed. Decoded orders must survive another round of encoding and decoding.
func FuzzDecode(f *testing.F) {
	line := message.EncodeLine(
		reservation.OrderLine{OrderSn: "06cq", BuyerID: "7", Quantity: 1, Name: "李雷", Phone: "+86"},
	)
	barrier, _ := message.EncodeBarrier(42, message.Barrier{Epoch: 3, Token: 9})
	f.Add(message.EncodeOrders(42, message.JoinEntries([][]byte{line, line})))
	f.Add(barrier)
	f.Add([]byte(`{"goodsId":"-1","orders":[{"quantity":1e3}]}`))
	f.Add([]byte(`{"goodsId":"42","goodsId":"43","orders":[{"buyerId":7,"quantity":1}]}`))
	f.Add([]byte("{\"goodsId\":\"42\",\"orders\":[{\"name\":\"\xff\"}]}"))
	f.Fuzz(func(t *testing.T, body []byte) {
		m, err := message.Decode(body)
		if err != nil {
			require.ErrorIs(t, err, message.ErrMalformed)
			return
		}
		require.Positive(t, m.GoodsID)
		require.NotEqual(t, len(m.Orders) > 0, m.Barrier != nil)
		if m.Barrier != nil {
			return
		}
		entries := make([][]byte, len(m.Orders))
		for i, l := range m.Orders {
			entries[i] = message.EncodeLine(l)
		}
		encoded := message.EncodeOrders(m.GoodsID, message.JoinEntries(entries))
		again := must.Get(message.Decode(encoded))(t)
		require.Equal(t, m.Orders, again.Orders)
	})
}

// FuzzDecodeLine checks that every entry of the outbox or of pending decodes to an order line
// within its bounds, or is rejected as malformed.
func FuzzDecodeLine(f *testing.F) {
	f.Add([]byte(`{"orderSn":"06cq","buyerId":7,"quantity":1,"name":"a","phone":"1"}`))
	f.Add([]byte(`{"orderSn":"06cq","buyerId":"auth0|5f","quantity":1}`))
	f.Add([]byte(`{"buyerId":9223372036854775808,"quantity":-1}`))
	f.Add([]byte(`{"buyerId":7,"buyerId":8,"quantity":1}`))
	f.Add([]byte("{\"buyerId\":7,\"quantity\":1,\"name\":\"\xff\"}"))
	f.Fuzz(func(t *testing.T, entry []byte) {
		l, err := message.DecodeLine(entry)
		if err != nil {
			require.True(t, errors.Is(err, message.ErrMalformed), "%v", err)
			return
		}
		require.True(t,
			userid.Valid(l.BuyerID) && l.Quantity > 0 && l.Quantity <= seckill.MaxPerBuyerLimit,
			"%+v", l)
		text := message.EncodeLine(l)
		require.False(t, bytes.ContainsRune(text, '\n'))
		require.Equal(t, l, must.Get(message.DecodeLine(text))(t))
		require.JSONEq(t, string(must.Get(json.Marshal(l))(t)), string(text))
	})
}

// FuzzFindEntry checks that an order's entry is found in an array of entries, and that no part of
// another entry is taken for it.
func FuzzFindEntry(f *testing.F) {
	f.Add("06cq", "李雷", `{"orderSn":"06cr","buyerId":"7",`)
	f.Add("a", `\",{"orderSn":"a",`, `],[{"orderSn":"06cr",`)
	f.Fuzz(func(t *testing.T, sn, first, second string) {
		lines := []reservation.OrderLine{
			{OrderSn: "06cp", BuyerID: "6", Quantity: 1, Name: first, Phone: second},
			{OrderSn: sn, BuyerID: "7", Quantity: 2, Name: second, Phone: first},
			{OrderSn: "06cr", BuyerID: "8", Quantity: 3, Name: sn},
		}
		entries := make([][]byte, len(lines))
		for i, l := range lines {
			entries[i] = message.EncodeLine(l)
		}
		array := message.JoinArrays([][]byte{
			message.JoinEntries(entries[:1]), message.JoinEntries(entries[1:]),
		})
		require.Equal(t, message.JoinEntries(entries), array)
		if sn == "06cp" || sn == "06cr" {
			return
		}
		for i, entry := range must.Get(message.SplitEntries(array))(t) {
			require.Equal(t, entries[i], []byte(entry))
		}
		for i, want := range []string{"06cp", sn, "06cr"} {
			found, ok := message.FindEntry(array, want)
			require.True(t, ok)
			require.Equal(t, entries[i], found)
		}
		_, ok := message.FindEntry(array, sn+"x06")
		require.False(t, ok)
	})
}
