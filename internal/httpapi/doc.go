// Package httpapi is the contract over HTTP: routes, tokens, strict decoding, and the one shape of every answer.
//
// What it promises: every answer, of known and unknown routes alike, is
//
//	{"code": 200, "reason": "OK", "message": "ok", "data": {…}, "requestId": "…"}
//
// and no input makes it a 5xx or a stack trace: what is malformed is BAD_REQUEST with data.field naming the place.
// Refusals are looked for in one order: 401, 400, 404, 403, the sale's own state, 429, the rest.
//
// One way through it: routes.go says which call takes which fields; call.go takes a request through its steps;
// params.go reads the fields, strictly; the handlers (sales.go, merchant.go, path.go, orders.go, health.go) ask the
// services that api.go states as small interfaces; answer.go and refusal.go write what they say. It holds no rule of
// a sale or an order.
//
// Beside the API there are pages for people (pages.go; web/ draws them), which call it with a session's cookie
// (session.go) in a token's place.
//
// It is the only package that knows gin. It imports seckill, order and obs, and never a store, a queue or a metrics library.
package httpapi
