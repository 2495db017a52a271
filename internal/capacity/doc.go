// Package capacity estimates what a sale costs: a table of counts of work, multiplied by the cost
// of each piece. The counts follow from the Sale. A Calibration holds the costs.
//
// The calibration that is built in was measured on the machine that it names. `make calibrate`
// measures it again. The estimate simulates nothing: bursts are one factor, the ratio of the peak
// to the mean. Payments, merchants, TLS and the edge are not part of it.
//
// Of this project, the package imports orderwriter alone, for Processors.
package capacity
