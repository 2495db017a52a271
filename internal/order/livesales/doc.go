// Package livesales lists the sales that background workers serve: exposed sales, and closed ones
// until their last order is final.
//
// The List reads MySQL once a second for all workers of a process. While MySQL is down the last
// list serves, because no sale can be exposed or closed then.
package livesales
