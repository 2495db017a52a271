package httpapi

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/go-json-experiment/json"
)

// catalogCacheControl lets a CDN cache the catalog for as long as this node does.
const catalogCacheControl = "public, max-age=1"

// etagOf returns a weak tag of a page of sales (RFC 9110, 8.8.1). It ignores the server's time,
// which the Date header has too; otherwise every response would have a new tag.
func etagOf(shown list[saleResponse]) string {
	shown.Items = slices.Clone(shown.Items)
	for i := range shown.Items {
		shown.Items[i].ServerTime = timestamp{}
	}
	body, err := json.Marshal(shown)
	if err != nil {
		return "" // the response's own encoding reports the error
	}
	return weakTag(body)
}

func weakTag(body []byte) string {
	sum := sha256.Sum256(body)
	return `W/"` + hex.EncodeToString(sum[:12]) + `"`
}

// writeNotModified writes 304 where the client has the response already. Clients read
// the catalog again and again during a sale; 304 saves them the body.
func (a *api) writeNotModified(c *gin.Context, res response) bool {
	c.Header("Cache-Control", catalogCacheControl)
	c.Header("ETag", res.etag)
	current := strings.TrimPrefix(res.etag, "W/")
	for value := range strings.SplitSeq(c.GetHeader("If-None-Match"), ",") {
		tag := strings.TrimSpace(value)
		if tag == "*" || strings.TrimPrefix(tag, "W/") == current {
			requestContextOf(c.Request.Context()).reason = reasonOK
			c.Status(http.StatusNotModified)
			c.Writer.WriteHeaderNow()
			c.Abort()
			return true
		}
	}
	return false
}
