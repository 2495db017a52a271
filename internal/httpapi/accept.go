package httpapi

import (
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"
)

// prefers reports whether a caller's Accept names a media type and prefers it to JSON, which the
// caller gets otherwise (RFC 9110, 12.5.1). Of two that have the same quality the caller prefers
// the first.
func prefers(h http.Header, wanted string) bool {
	wantedQuality, jsonQuality, beforeJSON := 0.0, 0.0, false
	precision := 0 // of the range that matches JSON
	for item := range strings.SplitSeq(strings.Join(h["Accept"], ","), ",") {
		media, args, err := mime.ParseMediaType(item)
		if err != nil {
			continue
		}
		q := quality(args["q"])
		if media == wanted {
			wantedQuality, beforeJSON = q, precision < exactRange
		}
		if p := precisionOf(media); p > precision {
			jsonQuality, precision = q, p
		}
	}
	return wantedQuality > 0 &&
		(wantedQuality > jsonQuality || wantedQuality == jsonQuality && beforeJSON)
}

// accepts reports whether the values of a header such as Accept-Encoding name a word, with a weight
// above 0 (RFC 9110, 12.5.3).
func accepts(values []string, wanted string) bool {
	for item := range strings.SplitSeq(strings.Join(values, ","), ",") {
		word, args, err := mime.ParseMediaType(item)
		if err == nil && word == wanted {
			return quality(args["q"]) > 0
		}
	}
	return false
}

// exactRange is the precision of a range that is JSON's own media type.
const exactRange = 3

// precisionOf returns how precisely a media range names JSON, from 1 to exactRange; 0 where it does
// not match.
func precisionOf(media string) int {
	switch media {
	case gin.MIMEJSON:
		return exactRange
	case "application/*":
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
