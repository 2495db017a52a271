package httpapi_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/api"
)

func TestOpenAPI_IsServed(t *testing.T) {
	h := newFixture(t)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.url+"/openapi.yaml", nil)
	require.NoError(t, err)
	res, err := h.client.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.Equal(t, "application/yaml", res.Header.Get("Content-Type"))
	require.Equal(t, api.OpenAPI(), body)
}
