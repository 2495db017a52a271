// Package capacity plans a sale: what so many buyers who come so will cost at every hop, and what breaks first.
//
// It is arithmetic on two inputs, and reads nothing else: the Sale, and a Calibration that says what a piece of work costs. The
// calibration that is built in was measured on the machine that it names (make calibrate renews it).
//
// The way of the arithmetic:
//
//   - The crowd is a fluid that flows in small steps of time through limiter, random path, purchase and writer (Flow). It gives the
//     requests of each stage in each step.
//   - Requests that meet travel together. With λ arriving each second at one line and a trip of τ, those who come during a trip go
//     on the next one: a group has g = λτ + e^(-λτ) travellers in the mean (the mean of max(1, Poisson(λτ))), at most 256, and τ
//     itself grows with g. So calls and messages are requests over g.
//   - A batch of the writer gathers what comes while it lingers and writes, at most 500. A sale in buckets has a writer in each order queue
//     that one of its buckets falls into.
//   - Processor time is counts times the calibration's costs of each call and each thing in it; likewise bytes.
//
// What is no part of it: payments and expiry after the rush, merchants, the edge in front, TLS.
//
// It imports the standard library alone.
package capacity
