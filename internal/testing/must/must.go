// Package must shortens tests: it unwraps the results of calls that have to succeed.
package must

import "github.com/stretchr/testify/require"

// Get returns a call's value to the test that it is then given, and fails that test on the call's
// error: order := must.Get(store.Order(ctx, goodsID, orderSn))(t).
func Get[T any](value T, err error) func(t require.TestingT, message ...any) T {
	return func(t require.TestingT, message ...any) T {
		if h, ok := t.(interface{ Helper() }); ok {
			h.Helper()
		}
		require.NoError(t, err, message...)
		return value
	}
}
