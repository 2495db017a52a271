package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatHasNoDataIsNamed(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch q := r.URL.Query().Get("query"); q {
		case "rate(full[5m])":
			_, _ = w.Write([]byte(`{"data":{"result":[{}]}}`))
		case "wrong(":
			_, _ = w.Write([]byte(`{"error":"parse error"}`))
		default:
			_, _ = w.Write([]byte(`{"data":{"result":[]}}`))
		}
	}))
	defer server.Close()
	board := func(exprs ...string) string {
		file := filepath.Join(t.TempDir(), "board.json")
		text := `{"title":"Board","panels":[{"title":"Row"},{"title":"Panel","targets":[{"expr":"` + strings.Join(exprs, `"},{"expr":"`) + `"}]}]}`
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	run := func(files ...string) (string, error) {
		var out strings.Builder
		err := run(t.Context(), append([]string{"-prometheus", server.URL, "-patience", "10ms"}, files...), &out)
		return out.String(), err
	}
	out, err := run(board("rate(full[$__rate_interval])"))
	require.NoError(t, err)
	require.Equal(t, "Board: 1 queries, 0 without data\n", out)
	_, err = run(board("rate(full[5m])", "empty", "wrong("))
	require.EqualError(t, err, "Board, Panel: empty: no data\nBoard, Panel: wrong(: parse error")
	_, err = run()
	require.Error(t, err)
	_, err = run(filepath.Join(t.TempDir(), "none.json"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
