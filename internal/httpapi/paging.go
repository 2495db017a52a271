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

// list is the data of every paged response. A cursor holds the last key instead of an offset, so
// that inserted or deleted items do not shift the pages of a reading client.
type list[T any] struct {
	Items      []T     `json:"items"`
	NextCursor *string `json:"nextCursor"` // null on the last page
}

// page converts the found items to a list. The caller queries one item more than limit; if that
// item exists, there is another page.
func page[S, T any](found []S, limit int, show func(S) T, key func(S) string) list[T] {
	l := list[T]{Items: make([]T, 0, min(len(found), limit))}
	for _, s := range found[:min(len(found), limit)] {
		l.Items = append(l.Items, show(s))
	}
	if len(found) > limit {
		l.NextCursor = new(base64.RawURLEncoding.EncodeToString([]byte(key(found[limit-1]))))
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
	limiterCursor    = "l"
	webhookCursor    = "w"
	deliveryCursor   = "b"
	apiKeyCursor     = "k"
	refundCursor     = "r"
)

// cursorID takes the cursor of a list of sales; 0 is the first page.
func (r *request) cursorID() int64 {
	isID := func(s string) bool { n, ok := params.Decimal(s); return ok && n > 0 }
	n, _ := params.Decimal(r.cursor(saleCursor, isID))
	return n
}

// cursor returns the key of a list's cursor; "" is the first page. The store uses the key in a
// query, so the key must have the form of the list's own keys.
func (r *request) cursor(kind string, valid func(key string) bool) string {
	if !r.Has("cursor") {
		return ""
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(r.Raw("cursor"))
	key, ours := strings.CutPrefix(string(b), kind)
	if err != nil || !ours || !valid(key) {
		r.Reject("cursor", "is not one of ours")
		return ""
	}
	return key
}

// isUUID accepts the usual form with hyphens only; uuid.Validate accepts three others.
func isUUID(s string) bool { return len(s) == 36 && uuid.Validate(s) == nil }

func saleKey(goodsID int64) string { return saleCursor + strconv.FormatInt(goodsID, 10) }
