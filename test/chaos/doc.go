// Package chaos holds whole installations against the design's guarantees while something dies: real servers, the
// project's own programs as processes, a rush of stubborn buyers, one harm at a random moment of a printed seed, and
// then, when everything is up and quiet again, the verdict of package check.
//
//	go test ./test/chaos                                            three harms, one seed, a small sale
//	go test ./test/chaos -chaos.harms=all -chaos.seeds=5 -timeout 2h    what make chaos runs
//	go test ./test/chaos -chaos.harms=redis-flushall -chaos.seed=7  one run again
package chaos
