package httpapi_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/badrequests"
)

func TestBadInput_IsNamedAndChangesNothing(t *testing.T) {
	h := newFixture(t)
	f := h.fixture()
	cases, err := badrequests.Cases(f)
	require.NoError(t, err)
	require.Greater(t, len(cases), 120)
	before := h.changes()
	for _, c := range cases {
		assert.NoError(t, badrequests.Check(t.Context(), h.client, h.url, c))
	}
	require.Equal(t, before, h.changes(), "a bad request changed something")
	require.NotContains(t, h.log.String(), "level=ERROR")
	t.Logf("%d cases", len(cases))
}
