// Package faults holds whole installations against the design's guarantees while something dies: real servers, the
// project's own programs as processes, a rush of stubborn buyers, one harm at a random moment of a printed seed, and
// then, when everything is up and quiet again, the verdict of package check.
//
//	go test ./test/faults                                            three harms, one seed, a small sale
//	go test ./test/faults -faults.names=all -faults.seeds=5 -timeout 2h    what make faults runs
//	go test ./test/faults -faults.names=redis-flushall -faults.seed=7  one run again
package faults
