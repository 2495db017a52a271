// Package livesales lists the sales that background workers serve: exposed sales, and closed ones
// until their last order is final.
//
// The List reads MySQL once a second for all workers of a process. While MySQL is down the last
// list serves, because no sale can be exposed or closed then.
//
// A sale is at rest once its row has been unchanged for 20 s and every check of that time found
// that Redis and MySQL agree and nothing is in flight. Workers do not serve it. Any change of the
// row ends its rest within a second, and so does a request that meets a lost sale or cannot publish
// an order. A check ends it within 30 s in every other case.
package livesales
