package httpapi

import (
	"encoding/base64"
	"strconv"
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
func (p *params) limit() int { return int(p.integerOr("limit", defaultPage, 1, maxPage)) }

// cursorID takes a cursor that ends in an id; 0 is the beginning.
func (p *params) cursorID() int64 {
	s := p.cursor()
	if s == "" {
		return 0
	}
	n, ok := decimal(s)
	if !ok || n <= 0 {
		p.complain("cursor", "is not one of ours")
	}
	return n
}

// cursorSn takes a cursor that ends in an order number; "" is the beginning.
func (p *params) cursorSn() string {
	s := p.cursor()
	if s != "" && !likeOrderSn(s) {
		p.complain("cursor", "is not one of ours")
	}
	return s
}

func (p *params) cursor() string {
	f := p.find("cursor")
	if f == nil {
		return ""
	}
	s, err := base64.RawURLEncoding.Strict().DecodeString(f.text)
	if err != nil || len(s) == 0 || f.kind != bare && f.kind != quoted {
		p.complain("cursor", "is not one of ours")
	}
	return string(s)
}

func idText(id int64) string { return strconv.FormatInt(id, 10) }
