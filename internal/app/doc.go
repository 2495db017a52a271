// Package app wires the services behind the HTTP API and the background workers, and starts and
// stops them in order. It holds no business rules.
//
// Its subpackages provide the servers: connect uses real ones, embedded runs them in the process.
package app
