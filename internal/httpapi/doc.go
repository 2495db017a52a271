// Package httpapi serves the HTTP API, and the pages for people where they are enabled.
//
// Every JSON response, also for an unknown route, has one shape:
//
//	{"code": 200, "reason": "OK", "message": "ok", "data": {…}, "requestId": "…"}
//
// An error is in the form of RFC 9457 where the request's Accept prefers that.
//
// No input causes a 5xx status: malformed input is BAD_REQUEST with the field's name in data.field.
// Checks run in a fixed order: 401, 400, 404, 403, the sale's state, 429, everything else.
//
// routes.go lists the calls and their fields. handler.go runs the steps of a call, package params
// decodes its fields, and the handlers call the services in Deps. A service's error with a reason
// for the caller is an *apierror.Error. Every other error is logged and answered as INTERNAL.
// response.go and error_mapping.go write the results. The package has no rules of sales or orders.
//
// The pages (pages.go; package web renders them) use the same API with a session cookie
// (sessions.go) in place of a bearer token.
//
// Apart from this package, only the middleware ratelimit/ginlimit uses gin. The package imports no
// store, queue or metrics library.
package httpapi
