// Package workers holds what every background loop needs: a ticker loop, a sleep that ends with
// its context, and the backoff between retries.
package workers
