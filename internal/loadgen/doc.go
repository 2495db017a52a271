// Package loadgen runs virtual buyers against a running API and measures their latencies. A closed
// loop keeps a fixed number of buyers active; an open loop starts buyers at a fixed rate.
//
// In the open loop a buyer's time counts from its planned arrival, not from its first call. A
// stalled server then delays every buyer who should have arrived meanwhile (coordinated omission;
// Gil Tene, "How NOT to Measure Latency"). The generator's own delay is measured as lag.
//
// Each call is recorded in a histogram of its step (HdrHistogram, 1 µs to 2 minutes, three digits).
// A Result keeps only the buyers with a 202 or an uncertain outcome, for package verdict.
package loadgen
