package httpapi

import (
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"flashsale.dev/seckill/internal/apierror"
)

// jsonAppender is data that encodes itself. The responses of a purchase's steps implement it,
// because reflection would be a large part of their cost.
type jsonAppender interface {
	appendJSON(b []byte) ([]byte, error)
}

// appendEnvelope encodes a response. It replaces invalid UTF-8: an error may repeat a field's name
// from the request, and the response must be valid JSON.
func appendEnvelope(b []byte, e envelope) ([]byte, error) {
	b = strconv.AppendInt(append(b, `{"code":`...), int64(e.Code), 10)
	b = appendText(append(b, `,"reason":`...), string(e.Reason))
	b = appendText(append(b, `,"message":`...), e.Message)
	b, err := appendValue(append(b, `,"data":`...), e.Data)
	if err != nil {
		return nil, err
	}
	b = appendText(append(b, `,"requestId":`...), e.RequestID)
	return append(b, '}'), nil
}

func appendText(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s) // its error reports invalid UTF-8, which it has replaced
	return b
}

// appendValue encodes the frequent types of a rush without reflection, and all others with it. It
// sorts maps, so that two responses with the same data are the same bytes.
func appendValue(b []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(b, "{}"...), nil // always an object, so that clients need no check for null
	case jsonAppender:
		return v.appendJSON(b)
	case int64:
		return strconv.AppendInt(b, v, 10), nil
	case time.Time:
		return appendTimestamp(b, timestamp(v)), nil
	default:
		text, err := json.Marshal(v, jsontext.AllowInvalidUTF8(true), json.Deterministic(true))
		return append(b, text...), err
	}
}

func appendTimestamp(b []byte, t timestamp) []byte {
	b, _ = t.AppendText(append(b, '"'))
	return append(b, '"')
}

// errorData is an error's data: one field. It encodes itself because SOLD_OUT and NOT_STARTED are
// the most frequent responses of a rush.
type errorData apierror.Detail

func (d errorData) appendJSON(b []byte) ([]byte, error) {
	b, err := appendValue(append(appendText(append(b, '{'), d.Name), ':'), d.Value)
	return append(b, '}'), err
}

func (p pathResponse) appendJSON(b []byte) ([]byte, error) {
	b = appendText(append(b, `{"randomPath":`...), p.RandomPath)
	return append(appendTimestamp(append(b, `,"expiresAt":`...), p.ExpiresAt), '}'), nil
}

func (q queuedResponse) appendJSON(b []byte) ([]byte, error) {
	return append(appendText(append(b, `{"orderSn":`...), q.OrderSn), '}'), nil
}
