package httpapi_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/api"
)

func TestOpenAPI_IsServed(t *testing.T) {
	res, body := newFixture(t).do("GET", "/openapi.yaml", "")
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.Equal(t, "application/yaml", res.Header.Get("Content-Type"))
	require.Equal(t, string(api.OpenAPI()), body)
}
