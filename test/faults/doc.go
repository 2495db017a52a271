// Package faults tests whole installations while something fails. A run starts real servers and the
// project's own programs as processes, and sends buyers that repeat broken requests. It injects one
// fault at a moment that a printed seed chooses. Once everything works again and is drained,
// package check compares the answers to buyers with MySQL, Redis and the queues.
//
//	go test ./test/faults                                    four faults and a soak, all small
//	make faults                                              every fault, five seeds, 2,000 units
//	make soak                                                an hour of sales and faults
//	go test ./test/faults -faults.names=redis-flushall -faults.seed=7    repeats one run
package faults
