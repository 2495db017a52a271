// Package primary connects database/sql to the primary of several MySQL servers: the one server of
// a replication group, or of a pair with external failover, that accepts writes.
//
// Every new connection is asked for its server's role, and again when the pool hands it out and the
// last answer is older than RoleTTL. A connection whose server lost the role leaves the pool, so a
// program follows a failover without a restart and without a proxy.
//
// The package guarantees no more than that a server said it was writable at most RoleTTL ago. A
// write to a demoted server fails there; callers repeat it.
package primary
