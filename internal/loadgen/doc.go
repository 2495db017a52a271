// Package loadgen lets many buyers of package buyer loose on a running API, in a closed loop (so many at once) or an open one
// (so many arrive each second, whatever becomes of those before), and measures what they meet.
//
// In the open loop a buyer's time runs from the moment it was meant to arrive, not from the moment the generator got
// round to it: a server that stalls is charged for everybody who should have come meanwhile (coordinated omission; Gil
// Tene, "How NOT to Measure Latency"). How far the generator itself fell behind is measured beside it, as lag.
//
// Every call is counted in a histogram of its step (HdrHistogram, 1 µs to 2 minutes, three digits). Of the buyers only those
// are kept who hold a promise or may hold one without knowing: package verdict holds them against the API's books.
package loadgen
