package httpapi

import (
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// prefers reports whether a caller's Accept names a media type and prefers it to another one, which
// the caller gets otherwise (RFC 9110, 12.5.1). Of two that have the same quality the caller
// prefers the first.
func prefers(h http.Header, wanted, other string) bool {
	best, others, named, first := 0.0, 0.0, false, false
	precision := 0 // of the range that matches the other type
	for item := range strings.SplitSeq(strings.Join(h["Accept"], ","), ",") {
		media, args, err := mime.ParseMediaType(item)
		if err != nil {
			continue
		}
		q := quality(args["q"])
		if media == wanted {
			best, named, first = q, true, precision < exactRange
		}
		if p := precisionOf(media, other); p > precision {
			others, precision = q, p
		}
	}
	return named && best > 0 && (best > others || best == others && first)
}

const exactRange = 3

// precisionOf returns how precisely a media range names a type; 0 where it does not match.
func precisionOf(media, of string) int {
	kind, _, _ := strings.Cut(of, "/")
	switch media {
	case of:
		return exactRange
	case kind + "/*":
		return 2
	case "*/*":
		return 1
	default:
		return 0
	}
}

// quality returns the weight of a media range: 1 where it has none, 0 for one that is not valid.
func quality(text string) float64 {
	if text == "" {
		return 1
	}
	q, err := strconv.ParseFloat(text, 64)
	if err != nil || !(q >= 0 && q <= 1) {
		return 0
	}
	return q
}
