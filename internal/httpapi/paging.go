package httpapi

import (
	"encoding/base64"
	"strconv"
	"strings"

	"flashsale.dev/seckill/internal/httpapi/params"
)

// Bounds of a page.
const (
	defaultPage = 20
	maxPage     = 100
)

// list is the shape of every list.
type list[T any] struct {
	Items      []T     `json:"items"`
	NextCursor *string `json:"nextCursor"` // null on the last page
}

// page makes a list of what was asked for with one more than the limit: that one tells whether there is another page.
func page[S, T any](found []S, limit int, show func(S) T, key func(S) string) list[T] {
	l := list[T]{Items: make([]T, 0, min(len(found), limit))}
	for _, s := range found[:min(len(found), limit)] {
		l.Items = append(l.Items, show(s))
	}
	if len(found) > limit {
		next := base64.RawURLEncoding.EncodeToString([]byte(key(found[limit-1])))
		l.NextCursor = &next
	}
	return l
}

// limit takes the size of a page.
func (r *request) limit() int { return int(r.IntOr("limit", defaultPage, 1, maxPage)) }

// A cursor says of which kind of list it is, so that one list's is not another's.
const (
	saleCursor  = "s"
	orderCursor = "o"
	auditCursor = "a"
)

// cursorID takes the cursor of a list of sales; 0 is the top.
func (r *request) cursorID() int64 {
	s := r.cursor(saleCursor)
	n, ok := params.Decimal(s)
	if s != "" && (!ok || n <= 0) {
		r.Reject("cursor", "is not one of ours")
	}
	return n
}

// cursorSn takes the cursor of a list of orders; "" is the top.
func (r *request) cursorSn() string {
	s := r.cursor(orderCursor)
	if s != "" && !isOrderSn(s) {
		r.Reject("cursor", "is not one of ours")
	}
	return s
}

func (r *request) cursor(kind string) string {
	if !r.Has("cursor") {
		return ""
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(r.Raw("cursor"))
	s, ours := strings.CutPrefix(string(b), kind)
	if err != nil || !ours || s == "" {
		r.Reject("cursor", "is not one of ours")
		return ""
	}
	return s
}

func saleKey(goodsID int64) string { return saleCursor + strconv.FormatInt(goodsID, 10) }
