// Package primary connects database/sql to the primary of several MySQL servers. The primary is the
// one server of a replication group, or of a pair with external failover, that accepts writes.
//
// The package queries the role of a server for every new connection. It repeats the query when the
// pool returns a connection and the last answer is older than RoleTTL. A connection whose server
// lost the role leaves the pool, so a program follows a failover without a restart and without a
// proxy.
//
// The package guarantees only that a server reported itself writable at most RoleTTL ago. A write
// to a demoted server fails there, and the caller repeats it.
package primary
