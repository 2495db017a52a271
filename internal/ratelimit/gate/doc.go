// Package gate decides requests by named rules, with few calls to Redis.
//
// A Gate answers most requests from this node's memory. Four things save calls:
//
//   - denial cache: a denial is repeated until the limiter could admit again
//   - leases: the node takes some permits in advance and hands them out itself
//   - batching: concurrent requests for one key become one request, and the
//     requests for several keys become one script call
//   - circuit breaker: a Redis that fails is not called for a moment
//
// While Redis does not answer, a rule's onError decides. With onError: local the
// node admits its share of the limit and records it as a debt. It pays the debt
// with the next permits that Redis grants.
package gate
