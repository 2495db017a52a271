// Package redisstore keeps the live state of sales in Redis: gate and counters, reservations, the
// outbox, pending orders, and the locks of rebuilds. The rate limiter has a store of its own.
//
// Every key of one goods has the goods id as its hash tag, so that one script can use them all on a
// cluster:
//
//	sk:{42}            hash    the sale: gate, epoch, lease, window, limit, the ledger's numbers
//	sk:{42}:buyers     hash    buyer -> units held, and numbers of active and recently ended orders
//	sk:{42}:pending    hash    order number -> time (ms), units, and its entry or block
//	sk:{42}:blocks     hash    block -> entries of up to 32 pending orders, to publish again
//	sk:{42}:outbox     stream  batches of entries that RabbitMQ has not confirmed
//	sk:{42}:moves      set     ids of the stock moves applied in this epoch, and of refused cuts
//	sk:{42}:p:<path>   string  a random path that an earlier release stored, for 24 h at most
//	sk:{42}:tally      hash    refusal reason -> count
//	sk:{42}:pace       hash    second -> orders reserved
//	sk:{42}:waited     string  written before a WAIT, so that WAIT covers earlier writes
//	sk:{42}:rebuild    string  the lock of its rebuild, while it is held
//	sk:{42}:stage:<id> hash    buyers that one load stages, and how many batches of orders
//	sk:{42}:room       hash    the waiting room: last number, watermark, draw (see room.lua)
//	sk:{42}:room:<n>   hash    buyer -> number, in one of 16,384 buckets
//	sk:{42}:turns      zset    admissions that are not used, by their end
//	sk:{42}:done       bitmap  numbers that wait no more
//	sk:{42}:gap        bitmap  numbers that Redis may not have handed out
//	sk:{42}:late       zset    numbers that are called first, by position
//	sk:{42}:used       set     buyers who bought with their last admission
//
// One key belongs to no goods: sk:ended-rests, the set of the sales that requests found lost.
//
// The keys :tally and :pace keep their names. Releases run side by side during an upgrade, and the
// counters of a renamed key would restart.
//
// Each step of a sale is one script of scripts/lua. This package binds KEYS and ARGV and decodes
// the answer; the script decides. A call that exceeds its deadline has an unknown outcome and
// returns an error. A Store is safe for concurrent use.
package redisstore
