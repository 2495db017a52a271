// Package redisstore is what the house says to Redis, besides the limiter: the state of each sale, its random paths,
// its reservations, its outbox and what is pending, and the locks of the background work.
//
// Every key of one goods carries the goods id as its hash tag, so that one script sees them all on a cluster:
//
//	sk:{42}            hash    the sale: gate, epoch, lease, window, limit and the four numbers of the ledger
//	sk:{42}:buyers     hash    buyer -> units held and the order numbers that hold them
//	sk:{42}:pending    hash    order number -> when, how many, and the entry to publish again
//	sk:{42}:outbox     stream  groups that RabbitMQ has not confirmed
//	sk:{42}:moves      set     ids of the releases given in this epoch
//	sk:{42}:p:<path>   string  one random path, while it lives
//	sk:{42}:waited     string  written before a WAIT, so that there is something to wait for
//	sk:{42}:rebuild    string  the lock of its rebuild, while it is held
//	sk:{42}:stage:<n>  hash    buyers being loaded for the epoch to come
//
// Each step is one script of scripts/lua; this package binds its KEYS and ARGV and reads its answer, and decides
// nothing. A call that runs into its deadline has an unknown outcome, and says so by its error.
package redisstore
