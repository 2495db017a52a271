// Package bench compares the programs with floors. A floor does the same work on the same machine
// at the same time. It has bare parts only: gin without a service behind it, one Redis script, SQL
// statements.
//
// Every benchmark with a floor lets the program and its floors work in turn. BenchmarkPaid has a
// goal in place of a floor. One measurement of each is a round, and a round is one operation of
// the benchmark: -benchtime 5x is five rounds. The table shows medians over the rounds, and the
// ratio "ours / floor" of each round's pair. Other load on the machine changes that ratio much less
// than the rates. Where a separate process does the work, the table has its processor time for each
// piece of work.
//
//	make bench           prints the table
//	make bench-record    appends it to reports/bench.md, with machine and versions
//	make calibrate       writes internal/capacity/calibration.json
//	make profile         takes processor profiles of the API
//
// Package servers starts private servers. Package installation starts the programs as they are
// released.
package bench
