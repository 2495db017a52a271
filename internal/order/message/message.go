// Package message is what the order queue transports: the JSON of a message and of its entries, one
// for each reservation. The API, the relay and the consumer agree on it through this package.
// Releases that run side by side do too, so its format only grows.
package message

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/userid"
)

// Message is the body of a queue's message: orders of one goods, or a barrier. It is encoded as
// JSON:
//
//	{"goodsId":"42","orders":[{"orderSn":"…","buyerId":"7","quantity":1,"name":"…","phone":"…"}, …]}
//	{"goodsId":"42","barrier":{"epoch":3,"token":9}}
//
// The entries of orders are byte for byte those that the reserve script keeps in the outbox and in
// pending. The relay can therefore copy them without decoding.
type Message struct {
	GoodsID int64                   `json:"goodsId,string"`
	Orders  []reservation.OrderLine `json:"orders,omitempty"`
	Barrier *Barrier                `json:"barrier,omitempty"`
}

// Barrier has the consumer record that every message before it is committed.
type Barrier struct {
	Epoch int64 `json:"epoch"` // the epoch that ends
	Token int64 `json:"token"` // the fencing token of the rebuild
}

// ErrMalformed means that a message can't be decoded or breaks a rule. No retry can succeed.
var ErrMalformed = errors.New("malformed message")

// EncodeLine encodes one entry as JSON. It writes the names of the struct itself, because encoding
// by reflection is slower. Broken UTF-8 becomes U+FFFD.
func EncodeLine(l reservation.OrderLine) []byte {
	const members = 96 // more than the names and numbers need
	b := make([]byte, 0, members+len(l.OrderSn)+len(l.Name)+len(l.Phone))
	b = appendText(append(b, `{"orderSn":`...), l.OrderSn)
	b = appendText(append(b, `,"buyerId":`...), l.BuyerID)
	b = strconv.AppendInt(append(b, `,"quantity":`...), l.Quantity, 10)
	if l.Epoch != 0 {
		b = strconv.AppendInt(append(b, `,"epoch":`...), l.Epoch, 10)
	}
	if l.Name != "" {
		b = appendText(append(b, `,"name":`...), l.Name)
	}
	if l.Phone != "" {
		b = appendText(append(b, `,"phone":`...), l.Phone)
	}
	return append(b, '}')
}

func appendText(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s) // its error is broken UTF-8
	return b
}

// DecodeLine decodes one entry and checks it. Its error is ErrMalformed.
func DecodeLine(b []byte) (reservation.OrderLine, error) {
	l, err := unmarshal[reservation.OrderLine](b)
	if err != nil {
		return l, err
	}
	return l, CheckLine(l)
}

// unmarshal decodes a text of this release, or else of an earlier one. Its error is ErrMalformed.
func unmarshal[T any](b []byte) (v T, err error) {
	if err := jsonv2.Unmarshal(b, &v); err == nil {
		return v, nil
	}
	var older T
	if err := jsonv2.Unmarshal(b, &older, numbersAsText); err != nil {
		return older, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return older, nil
}

// numbersAsText decodes the ids of buyers of earlier releases, which were JSON numbers.
//
// Its look-up for each string costs as much as the rest of the decoding.
//
//nolint:gochecknoglobals // an encoding, which takes longer to make than a message to decode
var numbersAsText = jsonv2.WithUnmarshalers(jsonv2.UnmarshalFromFunc(
	func(d *jsontext.Decoder, s *string) error {
		if d.PeekKind() != '0' {
			return errors.ErrUnsupported
		}
		v, err := d.ReadValue()
		*s = string(v)
		return err
	}))

// EncodeOrder encodes the message of one order.
func EncodeOrder(goodsID int64, l reservation.OrderLine) []byte {
	return EncodeOrders(goodsID, JoinEntries([][]byte{EncodeLine(l)}))
}

// EncodeOrders writes the message of a sale from the JSON array of its entries, as in the outbox.
func EncodeOrders(goodsID int64, entries []byte) []byte {
	b := make([]byte, 0, len(entries)+48)
	b = append(b, `{"goodsId":"`...)
	b = strconv.AppendInt(b, goodsID, 10)
	b = append(b, `","orders":`...)
	b = append(b, entries...)
	return append(b, '}')
}

// JoinEntries returns the JSON array of entries.
func JoinEntries(entries [][]byte) []byte {
	b := append([]byte{'['}, bytes.Join(entries, []byte{','})...)
	return append(b, ']')
}

// JoinArrays returns the JSON array of the entries of JSON arrays.
func JoinArrays(arrays [][]byte) []byte {
	entries := make([][]byte, len(arrays))
	for i, a := range arrays {
		entries[i] = bytes.TrimSuffix(bytes.TrimPrefix(a, []byte{'['}), []byte{']'})
	}
	return JoinEntries(entries)
}

// SplitEntries returns the entries of a JSON array, byte for byte. Its error is ErrMalformed.
func SplitEntries(array []byte) (entries []jsontext.Value, err error) {
	if err := jsonv2.Unmarshal(array, &entries); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return entries, nil
}

// FindEntry returns the entry of an order in a JSON array of entries, byte for byte. The beginning
// of an entry is in no text of another one, because JSON escapes quotes.
func FindEntry(array []byte, orderSn string) ([]byte, bool) {
	at := bytes.Index(array, append(appendText([]byte(`{"orderSn":`), orderSn), ','))
	if at < 0 {
		return nil, false
	}
	entry, err := jsontext.NewDecoder(bytes.NewReader(array[at:])).ReadValue()
	return entry, err == nil
}

// EncodeBarrier encodes a barrier message.
func EncodeBarrier(goodsID int64, bar Barrier) ([]byte, error) {
	return json.Marshal(Message{GoodsID: goodsID, Barrier: &bar})
}

// Decode decodes a message; its error is ErrMalformed. It does not validate the lines (see
// CheckLine), because one invalid line must not fail the valid lines of the same message.
//
// The decoder takes a third of encoding/json's time. It refuses repeated names and broken UTF-8.
// EncodeLine writes neither.
func Decode(body []byte) (Message, error) {
	m, err := unmarshal[Message](body)
	if err != nil {
		return m, err
	}
	if m.GoodsID <= 0 {
		return m, fmt.Errorf("%w: goodsId %d", ErrMalformed, m.GoodsID)
	}
	if (len(m.Orders) == 0) == (m.Barrier == nil) {
		return m, fmt.Errorf("%w: either orders or a barrier", ErrMalformed)
	}
	return m, nil
}

// CheckLine returns ErrMalformed unless buyer and quantity of a line are within their bounds.
func CheckLine(l reservation.OrderLine) error {
	switch {
	case !userid.Valid(l.BuyerID):
		return fmt.Errorf("%w: buyerId %q", ErrMalformed, l.BuyerID)
	case l.Quantity <= 0 || l.Quantity > seckill.MaxPerBuyerLimit:
		return fmt.Errorf("%w: quantity %d", ErrMalformed, l.Quantity)
	}
	return nil
}
