// Package apiclient calls the flash sale's HTTP API as one user: a buyer, a merchant or an operator.
// It decodes the API's common answer shape and knows the few admin calls that load tests need.
//
// A Client is safe for concurrent use. It never retries; package buyer decides what to repeat.
package apiclient
