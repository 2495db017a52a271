// Package apiclient calls the flash sale's HTTP API as one user: a buyer, a merchant or an
// operator. It decodes the API's common answer shape and has the few admin calls that load tests
// need.
//
// A Client is safe for concurrent use. It repeats no answered call; package buyer decides about
// repeats. Only net/http repeats a request by itself, if a reused connection was closed.
package apiclient
