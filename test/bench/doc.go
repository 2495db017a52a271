// Package bench compares the programs with floors. A floor does the same work on the same machine
// at the same time. It has bare parts only: gin without a service behind it, one Redis script, SQL
// statements.
//
// A comparison lets the program and its floors work in turn. One measurement of each is a round,
// and a round is one operation of the benchmark: -benchtime 5x is five rounds. The table shows
// medians over the rounds, and the ratio of ours to each other contender's in the same round. Other
// load on the machine changes that ratio much less than the rates. All measured programs and
// servers are processes of their own, so the table has the processor time of each for a piece of
// work.
//
// An earlier commit's programs can compete too. Everything about whole systems is measured over
// HTTP, so that it does not matter how a commit stores its data.
//
//	make bench           prints the table; OLD=commit measures that commit's programs beside
//	make bench-record    appends it to reports/bench.md, with machine and versions
//	make calibrate       writes internal/capacity/calibration.json
//	make profile         takes processor profiles of the API
//
// Package servers starts private servers. Package installation starts the programs as they are
// released.
package bench
