// Package sqlstore keeps sales and orders in a SQL database: MySQL, MariaDB, or SQLite for a single
// process. It is the system of record: committed orders are sold, and Redis is rebuilt from it.
//
// Guarantees, on all three databases:
//   - Active orders never exceed the total. Orders and merchants' changes of the total write the
//     stock by compare-and-swap on the goods row's version; CHECK constraints back that up.
//   - Each order number is one row, even if its message arrives several times.
//   - A buyer's active orders never hold more than the sale's highest limit (table buyer_holdings).
//   - A return of units is written once: a row of stock_moves in the same transaction.
//
// Exported methods own their transaction; unexported functions that take tx run in their caller's.
// A transaction that changes an order's units locks the goods row first and order rows after it.
// Payment locks no goods row. It locks order rows in ascending order and inserts payments after
// that. This order of locks excludes deadlocks between them.
//
// Errors: a refusal is an *apierror.Error, an *orderwriter.AdoptError or a named error of the
// domain. Errors of invalid data of one order (too long, not text, a violated check) are plain.
// Every other error wraps order.ErrTryAgain: its outcome may be unknown, and the caller may repeat
// the call.
//
// A Store is safe for concurrent use. No other package uses GORM. Package primary connects by
// MySQL's driver; other packages only read the driver's errors.
package sqlstore
