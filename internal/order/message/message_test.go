package message

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/must"
)

// TestDecode_RefusesAmbiguousMessages checks that messages and entries with a repeated name or
// broken UTF-8 are malformed. Names in upper case are unknown names, which are ignored.
func TestDecode_RefusesAmbiguousMessages(t *testing.T) {
	const goods, line = `"goodsId":"42"`, `"buyerId":7,"quantity":1`
	decode := func(goods, line string) (Message, error) {
		return Decode(fmt.Appendf(nil, `{%s,"orders":[{%s}]}`, goods, line))
	}
	m := must.Get(decode(goods+`,"GOODSID":"43"`, line+`,"BUYERID":8,"QUANTITY":2`))(t)
	require.EqualValues(t, 42, m.GoodsID)
	require.Equal(t, "7", m.Orders[0].BuyerID)
	require.EqualValues(t, 1, m.Orders[0].Quantity)
	for name, bad := range map[string]string{
		"repeated goods":            goods + `,"goodsId":"42"`,
		"goods in upper case":       `"GOODSID":"42"`,
		"repeated unknown name":     goods + `,"x":1,"x":1`,
		"broken UTF-8 in a message": goods + ",\"x\":\"\xff\"",
	} {
		_, err := decode(bad, line)
		require.ErrorIs(t, err, ErrMalformed, name)
	}
	must.Get(DecodeLine([]byte("{" + line + "}")))(t)
	for name, bad := range map[string]string{
		"repeated buyer":        line + `,"buyerId":7`,
		"broken UTF-8 name":     line + ",\"name\":\"\xff\"",
		"lone surrogate":        line + `,"name":"\ud800"`,
		"broken UTF-8 in a key": line + ",\"\xff\":1",
	} {
		_, err := decode(goods, bad)
		require.ErrorIs(t, err, ErrMalformed, name)
		_, err = DecodeLine([]byte("{" + bad + "}"))
		require.ErrorIs(t, err, ErrMalformed, name)
	}
	_, err := DecodeLine([]byte(`{"BUYERID":7,"quantity":1}`))
	require.ErrorIs(t, err, ErrMalformed, "without buyer")
}
