// Package workers holds what every background loop needs: a ticker loop, a sleep that ends with
// its context, the backoff between retries, and the log of failures.
package workers
