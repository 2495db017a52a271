package servers

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// OIDCClient is the client id that the provider knows, which is also the audience of its tokens.
const OIDCClient = "flash-sale"

// OIDCServer is a private OpenID Connect provider: test/oidc-provider, on github.com/ory/fosite.
// Its users are "ada", a buyer, and "shop", a merchant by the claim realm.roles.
type OIDCServer struct {
	*Server
	issuer string
}

// Issuer returns the provider's issuer identifier, its URL.
func (s *OIDCServer) Issuer() string { return s.issuer }

// SetRedirect registers the client with a redirect URI.
func (s *OIDCServer) SetRedirect(tb testing.TB, uri string) {
	tb.Helper()
	s.control(tb, "client", url.Values{"redirect_uri": {uri}}.Encode())
}

// Rotate makes a new key of an algorithm, such as ES256, which signs from now on. The former keys
// stay published if keep is set; otherwise they are withdrawn.
func (s *OIDCServer) Rotate(tb testing.TB, algorithm string, keep bool) {
	tb.Helper()
	form := url.Values{"alg": {algorithm}}
	if keep {
		form.Set("keep", "1")
	}
	s.control(tb, "rotate", form.Encode())
}

// Sign returns a token with claims, signed with the newest key.
func (s *OIDCServer) Sign(tb testing.TB, claims map[string]any) string {
	tb.Helper()
	body, err := json.Marshal(claims)
	require.NoError(tb, err)
	return s.control(tb, "sign", string(body)).Token
}

// signed is the answer of Sign.
type signed struct{ Token string }

// control calls one of the provider's calls for tests.
func (s *OIDCServer) control(tb testing.TB, name, body string) (reply signed) {
	tb.Helper()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost,
		s.issuer+"/control/"+name, strings.NewReader(body))
	require.NoError(tb, err)
	if !strings.HasPrefix(body, "{") {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	res, err := http.DefaultClient.Do(req)
	require.NoError(tb, err)
	defer res.Body.Close()
	require.Equal(tb, http.StatusOK, res.StatusCode)
	require.NoError(tb, json.NewDecoder(res.Body).Decode(&reply))
	return reply
}

// OIDC builds the provider and starts it for one test. The first build takes about a minute.
func OIDC(tb testing.TB) *OIDCServer {
	tb.Helper()
	return forTest(tb, "oidc-provider", func(
		ctx context.Context, dir string,
	) (*OIDCServer, error) {
		path, err := buildModule(ctx, dir, "oidc-provider")
		if err != nil {
			return nil, err
		}
		return launchNew(ctx, "oidc-provider", func() (*OIDCServer, error) {
			port, err := freePort()
			if err != nil {
				return nil, err
			}
			issuer := "http://" + loopback(port)
			return &OIDCServer{issuer: issuer, Server: &Server{
				name: "oidc-provider",
				proc: Process{
					Path: path, Dir: dir, Args: []string{"-addr", loopback(port)},
					File: filepath.Join(dir, "oidc-provider.log"), OnOrphan: syscall.SIGTERM,
				},
				ready: func(ctx context.Context) error { return answers(ctx, issuer+"/keys") },
			}}, nil
		})
	})
}

// buildModule builds the program of a module under test/, and returns its path in dir.
func buildModule(ctx context.Context, dir, name string) (string, error) {
	at, err := moduleRoot(ctx)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, name)
	return path, goBuild(ctx, filepath.Join(at, "test", name), "-o", path, ".")
}
