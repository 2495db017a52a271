package browser

import (
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill"
)

// TestVisitor_GetsAnEmptyProfile leaves a session, storage and a script in a profile. Another
// visitor gets its tab without them.
func TestVisitor_GetsAnEmptyProfile(t *testing.T) {
	h := standalone(t)
	left := len(chrome.idle)
	t.Run("leaves", func(t *testing.T) {
		v := h.enters(t, phone, seckill.Buyer, 1, "Ada")
		v.before(`window.left = true`)
		v.open("/")
		v.sees(".who", "Ada")
		v.run(`localStorage.left = sessionStorage.left = 'yes'`)
	})
	require.Len(t, chrome.idle, max(left, 1), "the tab is left to other visitors")
	v := h.visits(t)
	require.Len(t, chrome.idle, max(left, 1)-1, "the tab is reused")
	v.open("/")
	v.sees(".who", "Sign in")
	require.False(t, v.is(`window.left || localStorage.left || sessionStorage.left`))
}
