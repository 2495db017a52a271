// Package seckill is the sale and its rules: its life from draft to closed, its window, the random path that lets
// one buyer try, the reservation that takes units from it, and the ledger that accounts for all of them.
//
// It knows no SQL, no Redis and no HTTP: what it needs of them it states as small interfaces where they are used.
// MySQL is the truth about a sale; Redis is the permission to sell it, one epoch at a time, and can always be
// built again from the truth.
//
// Times are UTC. Whether a sale is on is decided by Redis' clock alone, never by the host's.
// Everything here is safe for concurrent use unless it says otherwise.
// It imports the standard library, internal/group and x/sync.
package seckill
