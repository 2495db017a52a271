package httpapi

import (
	"strings"

	"flashsale.dev/seckill/internal/apikey"
)

// PrivateRoute is a call that needs a caller, for tests outside the package.
type PrivateRoute struct {
	Methods []string
	Path    string
	Scope   apikey.Scope
}

// PrivateRoutes returns all calls of the API that need a caller.
func PrivateRoutes() (all []PrivateRoute) {
	for _, r := range newAPI(Deps{}).routes() {
		if !r.public {
			all = append(all, PrivateRoute{strings.Fields(r.methods), r.path, r.scope})
		}
	}
	return all
}
