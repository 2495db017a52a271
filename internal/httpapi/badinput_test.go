package httpapi_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/badrequests"
	"flashsale.dev/seckill/internal/testing/must"
)

func TestBadInput_IsNamedAndChangesNothing(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	f := h.fixture()
	cases := must.Get(badrequests.Cases(f))(t)
	require.Greater(t, len(cases), 120)
	before := h.changes()
	for _, c := range cases {
		assert.NoError(t, badrequests.Check(t.Context(), h.client, h.url, c))
	}
	require.Equal(t, before, h.changes(), "a bad request changed something")
	require.NotContains(t, h.logged(), "level=ERROR")
	t.Logf("%d cases", len(cases))
}
