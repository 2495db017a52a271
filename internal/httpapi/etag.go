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

// catalogCacheControl lets an edge answer for us as long as our own memory does.
const catalogCacheControl = "public, max-age=1"

// etagOf is a weak tag of a page of sales: two pages that differ in nothing but the clock are as good as each other
// (RFC 9110, 8.8.1). The moment's clock is in Date.
func etagOf(shown list[saleResponse]) string {
	shown.Items = slices.Clone(shown.Items)
	for i := range shown.Items {
		shown.Items[i].ServerTime = timestamp{}
	}
	body, err := json.Marshal(shown)
	if err != nil {
		return "" // it will fail again, and be told, where it is written
	}
	sum := sha256.Sum256(body)
	return `W/"` + hex.EncodeToString(sum[:12]) + `"`
}

// unchanged answers 304 to who has the answer already.
func (a *api) writeNotModified(c *gin.Context, ans response) bool {
	c.Header("Cache-Control", catalogCacheControl)
	c.Header("ETag", ans.etag)
	for value := range strings.SplitSeq(c.GetHeader("If-None-Match"), ",") {
		if tag := strings.TrimSpace(value); tag == "*" || strings.TrimPrefix(tag, "W/") == strings.TrimPrefix(ans.etag, "W/") {
			requestContextOf(c.Request.Context()).reason = reasonOK
			c.Status(http.StatusNotModified)
			c.Writer.WriteHeaderNow()
			c.Abort()
			return true
		}
	}
	return false
}
