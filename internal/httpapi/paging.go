package httpapi

import (
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"flashsale.dev/seckill/internal/httpapi/params"
)

// Bounds of a page's size.
const (
	defaultPage = 20
	maxPage     = 100
)

// list is the data of every paged response.
type list[T any] struct {
	Items      []T     `json:"items"`
	NextCursor *string `json:"nextCursor"` // null on the last page
}

// page converts what was found to a list. The caller queries one item more than limit; its presence
// says that there is another page.
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

// limit takes the page size.
func (r *request) limit() int { return int(r.IntOr("limit", defaultPage, 1, maxPage)) }

// A cursor begins with the kind of its list, so that no list accepts another's cursor.
const (
	saleCursor       = "s"
	orderCursor      = "o"
	auditCursor      = "a"
	deadLetterCursor = "d"
)

// cursorID takes the cursor of a list of sales; 0 is the first page.
func (r *request) cursorID() int64 {
	s := r.cursor(saleCursor)
	n, ok := params.Decimal(s)
	if s != "" && (!ok || n <= 0) {
		r.rejectCursor()
	}
	return n
}

// cursorSn takes the cursor of a list of orders; "" is the first page.
func (r *request) cursorSn() string {
	s := r.cursor(orderCursor)
	if s != "" && !isOrderSn(s) {
		r.rejectCursor()
	}
	return s
}

// cursorUUID takes the cursor of a list whose keys are UUIDs; "" is the first page.
func (r *request) cursorUUID(kind string) string {
	s := r.cursor(kind)
	if s != "" && !isUUID(s) {
		r.rejectCursor()
	}
	return s
}

// cursor takes a cursor's key; "" where there is none.
func (r *request) cursor(kind string) string {
	if !r.Has("cursor") {
		return ""
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(r.Raw("cursor"))
	s, ours := strings.CutPrefix(string(b), kind)
	if err != nil || !ours || s == "" {
		r.rejectCursor()
		return ""
	}
	return s
}

func (r *request) rejectCursor() { r.Reject("cursor", "is not one of ours") }

// isUUID accepts the usual form with hyphens only; uuid.Validate accepts three others.
func isUUID(s string) bool { return len(s) == 36 && uuid.Validate(s) == nil }

func saleKey(goodsID int64) string { return saleCursor + strconv.FormatInt(goodsID, 10) }
