// Package retention deletes rows that nothing needs any more. docs/how-to/operate.md lists what is
// kept for ever.
//
// The Worker deletes in batches, in turn for each kind of row. Several processes may run one: a row
// that another has deleted is gone, and no error.
package retention
