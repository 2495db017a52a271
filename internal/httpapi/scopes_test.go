package httpapi

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/apikey"
	"flashsale.dev/seckill/internal/httpapi/web"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/must"
)

// keyring is a store of keys in memory.
type keyring map[string]apikey.Key

func (r keyring) AddAPIKey(_ context.Context, k apikey.Key) error {
	r[k.ID] = k
	return nil
}

func (r keyring) APIKeysByID(_ context.Context, ids []string) (found []apikey.Key, err error) {
	for _, id := range ids {
		if k, ok := r[id]; ok {
			found = append(found, k)
		}
	}
	return found, nil
}

func (r keyring) APIKeys(context.Context, string, string, int) ([]apikey.Key, error) {
	return nil, nil
}

func (r keyring) CountAPIKeys(context.Context, string) (int, error)             { return 0, nil }
func (r keyring) UseAPIKeys(context.Context, []string, time.Time) error         { return nil }
func (r keyring) RevokeAPIKey(context.Context, string, string, time.Time) error { return nil }

// TestRoutes_RefuseEveryKeyWithoutTheirScope calls every route that needs a caller with a key of
// each single scope, and with a key of all scopes but the route's. The API has no services here: a
// route that let such a key pass would panic. The message names the scope.
func TestRoutes_RefuseEveryKeyWithoutTheirScope(t *testing.T) {
	ring := keyring{}
	service := apikey.Service{Store: ring, Now: time.Now}
	key := func(scopes ...apikey.Scope) string {
		_, text, err := service.Create(t.Context(), seckill.Actor{Role: seckill.Operator},
			apikey.NewKey{MerchantID: "70", Name: "erp", Scopes: scopes})
		require.NoError(t, err)
		return text
	}
	log := slog.New(slog.DiscardHandler)
	a := newAPI(Deps{KeyVerifier: must.Get(apikey.NewVerifier(ring, time.Now, log))(t), Log: log})
	handler := a.engine(a.routes())
	checked := 0
	for _, r := range a.routes() {
		if r.public {
			continue
		}
		others := slices.DeleteFunc(apikey.Scopes(), func(s apikey.Scope) bool { return s == r.scope })
		keys := []string{key(others...)}
		for _, s := range others {
			keys = append(keys, key(s))
		}
		path := regexp.MustCompile(`[:*]\w+`).ReplaceAllString(r.path, "1")
		for method := range strings.FieldsSeq(r.methods) {
			for _, text := range keys {
				req := httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody)
				req.Header.Set("Authorization", "Bearer "+text)
				res := httptest.NewRecorder()
				handler.ServeHTTP(res, req)
				require.Equal(t, http.StatusForbidden, res.Code, "%s %s", method, path)
				require.NotContains(t, res.Body.String(), text)
				if method == http.MethodHead {
					continue
				}
				var e envelope
				require.NoError(t, json.Unmarshal(res.Body.Bytes(), &e))
				want := "an API key may not do this"
				if r.scope != "" {
					want = "the API key lacks the scope " + string(r.scope)
				}
				require.Contains(t, e.Message, want, "%s %s", method, path)
				checked++
			}
		}
	}
	require.Greater(t, checked, 150)
}

// TestRoutes_ScopesFitTheirMethods checks that merchants' calls name a scope, that a reading scope
// allows no change, and that all other calls refuse keys. Webhooks have one scope: whoever reads them
// is a program that also sets them up.
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
	require.Equal(t, apikey.Scopes(), words[apikey.Scope](t, doc, "ApiKeyScope"))
	var offered []apikey.Scope
	for _, s := range (web.Page{}).Scopes() {
		offered = append(offered, apikey.Scope(s))
		for _, lang := range web.Langs() {
			require.NotEmpty(t, site(t).Words(lang)["keyScope."+s], "%s: %s", lang, s)
		}
	}
	require.Equal(t, apikey.Scopes(), offered, "on the page of keys")
}
