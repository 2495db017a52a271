// Package must shortens tests. It unwraps the results of calls that must succeed.
package must

import "github.com/stretchr/testify/require"

// Get returns a function that yields a call's value to a test. The function fails the test on the
// call's error. Example: order := must.Get(store.Order(ctx, goodsID, orderSn))(t).
func Get[T any](value T, err error) func(t require.TestingT, message ...any) T {
	return func(t require.TestingT, message ...any) T {
		if h, ok := t.(interface{ Helper() }); ok {
			h.Helper()
		}
		require.NoError(t, err, message...)
		return value
	}
}
