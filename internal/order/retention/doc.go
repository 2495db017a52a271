// Package retention deletes rows that nothing needs any more, so that no table but those of sales
// and their orders grows without end.
//
// The Worker deletes in batches, in turn for each kind of row. Several processes may run one: a row
// that another has deleted is gone, and no error.
package retention
