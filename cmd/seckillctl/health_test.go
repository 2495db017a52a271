package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHealth_FailsUnlessTheStatusIs200(t *testing.T) {
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, "draining")
		}
	}))
	defer node.Close()
	health := func(url string) error {
		return run(t.Context(), []string{"health", url}, nil, io.Discard, io.Discard)
	}

	require.NoError(t, health(node.URL+"/readyz"))
	require.ErrorContains(t, health(node.URL+"/drained"), "draining")
	require.Error(t, health("no url"))
	node.Close()
	require.Error(t, health(node.URL+"/readyz"), "no server listens")
}

// TestHealth_PrintsTheAnswer holds the operator's page: a node is ready while MySQL is away, and in
// a container nothing else reads its operations address.
func TestHealth_PrintsTheAnswer(t *testing.T) {
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"mysql":"unreachable"}`)
	}))
	defer node.Close()
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"health", node.URL}, nil, &out, io.Discard))
	require.Equal(t, `{"mysql":"unreachable"}`+"\n", out.String())
}
