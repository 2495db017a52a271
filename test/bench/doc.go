// Package bench measures the fixture beside its floors: what the same machine does at the same moment with the bare parts.
//
// Every benchmark is a duel: ours and its floors work in turn, one lap each, and a round of laps is one operation of
// the benchmark; so -benchtime 5x is five rounds. What is reported are medians over the rounds, and the ratio
// "ours / floor" of each round's pair, which other load on the machine moves far less than the rates themselves. Where the
// work is done by a process of its own, its processor time for each piece of work stands beside.
//
//	make bench           prints the table
//	make bench-record    appends it to docs/explanation/performance.md, with the machine, the versions and the command
//	make profile         takes processor profiles of the API in a rush
//
// The servers are private ones of internal/testing/servers; the programs of the fixture run as they are released, from internal/testing/installation.
package bench
