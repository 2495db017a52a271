package httpapi

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/apikey"
	"flashsale.dev/seckill/internal/seckill"
)

// TestRoutes_ScopesFitTheirMethods checks that merchants' calls name a scope, that a reading scope
// allows no change, and that all other calls refuse keys. Webhooks have one scope: whoever reads
// them is a program that also sets them up.
func TestRoutes_ScopesFitTheirMethods(t *testing.T) {
	for _, r := range newAPI(Deps{}).routes() {
		switch {
		case strings.HasPrefix(r.path, "/admin/webhooks"):
			require.Equal(t, apikey.WebhooksWrite, r.scope, r.path)
			continue
		case !strings.HasPrefix(r.path, "/admin/sales") &&
			!strings.HasPrefix(r.path, "/admin/orders") && r.path != "/admin/events" &&
			r.path != "/admin/audit":
			require.Empty(t, r.scope, r.path)
			continue
		}
		reads := strings.HasPrefix(r.methods, http.MethodGet)
		require.Equal(t, reads, strings.HasSuffix(string(r.scope), ":read"), r.path)
		require.Equal(t, !reads, strings.HasSuffix(string(r.scope), ":write"), r.path)
	}
}

// TestRoutes_NameTheirCallers checks that each call that needs a token says whose, that merchants'
// calls are under /admin/, and that no buyer may call these.
func TestRoutes_NameTheirCallers(t *testing.T) {
	for _, r := range newAPI(Deps{}).routes() {
		require.Equal(t, r.public, r.callers == nil, r.path)
		if !r.public {
			admin := strings.HasPrefix(r.path, "/admin/")
			require.Equal(t, !admin, r.callers(seckill.Actor{Role: seckill.Buyer}), r.path)
			require.Equal(t, admin, r.callers(seckill.Actor{Role: seckill.Operator}), r.path)
			require.False(t, r.callers(seckill.Actor{}), r.path)
		}
	}
}

// TestOpenAPI_HasEveryScope checks that the document names the scope of each call, and that the
// document and the page of keys list all scopes.
func TestOpenAPI_HasEveryScope(t *testing.T) {
	doc := openAPI(t)
	for _, r := range newAPI(Deps{}).routes() {
		found := apikey.Scope("")
		security, _ := under(t, doc, "paths", template(r.path), operation(r))["security"].([]any)
		for _, s := range security {
			if scopes, ok := s.(node)["apiKey"].([]any); ok {
				found = apikey.Scope(scopes[0].(string))
			}
		}
		require.Equal(t, r.scope, found, r.path)
	}
}
