package main

import (
	"crypto/rand"
	"encoding/json"
	"html/template"
	"net/http"
	"time"

	"github.com/ory/fosite"
	"github.com/ory/fosite/compose"
	"github.com/ory/fosite/handler/openid"
	"github.com/ory/fosite/storage"
	"github.com/ory/fosite/token/jwt"
)

// client is the only client. It is public: PKCE protects its codes.
const client = "flash-sale"

// users are the accounts, by the name in the form.
var users = map[string]map[string]any{
	"ada": {"sub": "idp|buyer-ada", "name": "Ada Lovelace"},
	"shop": {
		"sub": "idp|shop-1", "name": "Shop",
		"realm": map[string]any{"roles": []string{"x", "merchant"}},
	},
}

// provider is the handler.
type provider struct {
	issuer string
	keys   *keys
	store  *storage.MemoryStore
	oauth2 fosite.OAuth2Provider
}

// newProvider returns a provider whose client has no redirect URI yet: POST /control/client sets
// it.
func newProvider(issuer string) (http.Handler, error) {
	p := &provider{issuer: issuer, keys: &keys{}, store: storage.NewMemoryStore()}
	if err := p.keys.rotate("RS256", false); err != nil {
		return nil, err
	}
	config := &fosite.Config{
		GlobalSecret: []byte(rand.Text() + rand.Text()), IDTokenIssuer: issuer,
		EnforcePKCE: true, EnforcePKCEForPublicClients: true, AuthorizeCodeLifespan: time.Minute,
	}
	p.oauth2 = compose.Compose(config, p.store, &compose.CommonStrategy{
		CoreStrategy:               compose.NewOAuth2HMACStrategy(config),
		OpenIDConnectTokenStrategy: compose.NewOpenIDConnectStrategy(p.keys.private, config),
	}, compose.OAuth2AuthorizeExplicitFactory, compose.OpenIDConnectExplicitFactory,
		compose.OAuth2PKCEFactory)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.discovery)
	mux.HandleFunc("GET /keys", p.keys.serve)
	mux.HandleFunc("/authorize", p.authorize)
	mux.HandleFunc("POST /token", p.token)
	mux.HandleFunc("POST /control/client", p.setClient)
	mux.HandleFunc("POST /control/rotate", p.rotate)
	mux.HandleFunc("POST /control/sign", p.sign)
	return mux, nil
}

func (p *provider) discovery(w http.ResponseWriter, _ *http.Request) {
	reply(w, map[string]any{
		"issuer": p.issuer, "jwks_uri": p.issuer + "/keys",
		"authorization_endpoint": p.issuer + "/authorize", "token_endpoint": p.issuer + "/token",
		"response_types_supported":              []string{"code"},
		"subject_types_supported":               []string{"public"},
		"scopes_supported":                      []string{"openid", "profile", "phone", "email"},
		"id_token_signing_alg_values_supported": []string{"RS256", "ES256", "EdDSA"},
	})
}

var form = template.Must(template.New("").Parse(`<!doctype html><title>Sign in</title>
<form method="post">{{range $name, $_ := .}}
<button name="user" value="{{$name}}">{{$name}}</button>{{end}}</form>`))

// authorize shows the accounts, and returns the browser with a code for the chosen one.
func (p *provider) authorize(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	request, err := p.oauth2.NewAuthorizeRequest(ctx, r)
	if err != nil {
		p.oauth2.WriteAuthorizeError(ctx, w, request, err)
		return
	}
	user, known := users[r.PostFormValue("user")]
	if !known {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_ = form.Execute(w, users)
		return
	}
	for _, scope := range request.GetRequestedScopes() {
		request.GrantScope(scope)
	}
	now := time.Now()
	session := &openid.DefaultSession{
		Claims: &jwt.IDTokenClaims{
			Issuer: p.issuer, Subject: user["sub"].(string), Extra: user,
			ExpiresAt: now.Add(5 * time.Minute), IssuedAt: now, RequestedAt: now, AuthTime: now,
		},
		Headers: &jwt.Headers{}, Subject: user["sub"].(string),
	}
	response, err := p.oauth2.NewAuthorizeResponse(ctx, request, session)
	if err != nil {
		p.oauth2.WriteAuthorizeError(ctx, w, request, err)
		return
	}
	p.oauth2.WriteAuthorizeResponse(ctx, w, request, response)
}

// token exchanges a code.
func (p *provider) token(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	request, err := p.oauth2.NewAccessRequest(ctx, r, openid.NewDefaultSession())
	if err != nil {
		p.oauth2.WriteAccessError(ctx, w, request, err)
		return
	}
	response, err := p.oauth2.NewAccessResponse(ctx, request)
	if err != nil {
		p.oauth2.WriteAccessError(ctx, w, request, err)
		return
	}
	p.oauth2.WriteAccessResponse(ctx, w, request, response)
}

// setClient registers the client with the redirect URI of the form.
func (p *provider) setClient(w http.ResponseWriter, r *http.Request) {
	p.store.Clients[client] = &fosite.DefaultClient{
		ID: client, Public: true, RedirectURIs: []string{r.FormValue("redirect_uri")},
		ResponseTypes: []string{"code"}, GrantTypes: []string{"authorization_code"},
		Scopes: []string{"openid", "profile", "phone", "email"},
	}
	reply(w, map[string]any{})
}

// rotate makes a key of the form's alg; the form's keep publishes the former ones too.
func (p *provider) rotate(w http.ResponseWriter, r *http.Request) {
	if err := p.keys.rotate(r.FormValue("alg"), r.FormValue("keep") != ""); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	reply(w, map[string]any{})
}

// sign signs the claims of the body with the newest key.
func (p *provider) sign(w http.ResponseWriter, r *http.Request) {
	var claims map[string]any
	err := json.NewDecoder(r.Body).Decode(&claims)
	token := ""
	if err == nil {
		token, err = p.keys.sign(claims)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	reply(w, map[string]any{"token": token})
}

func reply(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body)
}
