// Package bench compares the programs with floors: the same work on the same machine at the same
// time, done by bare parts (gin without a service behind it, one Redis script, SQL statements).
//
// Every benchmark lets the program and its floors work in turn. One measurement of each is a round,
// and a round is one operation of the benchmark: -benchtime 5x is five rounds. The table shows
// medians over the rounds, and the ratio "ours / floor" of each round's pair: other load on the
// machine changes that ratio much less than the rates. Where a process of its own does the work,
// the table has its processor time for each piece of work.
//
//	make bench           prints the table
//	make bench-record    appends it to docs/explanation/performance.md, with machine and versions
//	make calibrate       writes internal/capacity/calibration.json
//	make profile         takes processor profiles of the API
//
// Package servers starts private servers, and package installation the programs as they are
// released.
package bench
