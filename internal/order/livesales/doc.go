// Package livesales lists the sales that background workers serve: exposed sales, and closed ones
// until their last order is final.
//
// The List asks MySQL once a second, for all workers of a process, whether a sale has changed. It
// reads the rows of a changed sale's bucket. MySQL sums over all sales for that. With many
// thousands of sales, or a slow MySQL, the List therefore asks up to six seconds apart. While MySQL
// is down the last list serves, because no sale can be exposed or closed then.
//
// A sale is at rest once its row has been unchanged for 20 s. Every check of that time must have
// found that Redis and MySQL agree and nothing is in flight. Workers do not serve it. Any change of
// the row ends its rest at the next reading. A request that meets a lost sale, or cannot publish an
// order, ends it within a second. A check ends it within a minute in every other case.
package livesales
