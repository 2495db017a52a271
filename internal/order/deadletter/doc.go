// Package deadletter lists, requeues and discards orders that could not be written.
//
// A dead letter's order is failed and its units are back on sale. Requeue takes the units anew and
// writes the order as created, or answers Conflict. A planned return protects the units against a
// crash between the two steps.
package deadletter
