// Package sqlstore keeps sales and orders in a SQL database: MySQL or MariaDB, or SQLite where one process does it all.
// It is the truth of the system: what it has committed is sold, and Redis is built from it.
//
// What it promises, on all three:
//   - never more active orders than total: stock changes only together with orders, by compare-and-swap under the
//     goods row's lock, and CHECK constraints stand behind that;
//   - each order number is one row, in whatever grouping and however often its message comes;
//   - a buyer's active orders never hold more than the sale's highest limit (buyer_holdings);
//   - what gives units back is written once, as a row of stock_moves in the same transaction.
//
// Exported methods own their transaction; unexported ones that take tx run in their caller's. Each transaction that
// changes orders' units locks the goods row first and order rows after it; paying changes a single order row and
// locks nothing else: so no two wait for each other in a circle.
//
// Errors: a refusal is a *seckill.Error, an *order.AdoptError or one of the packages' named errors. What is wrong with the
// data of one order (too long, a check violated, not text) comes back plain. Everything else is the
// infrastructure's trouble, its outcome perhaps unknown, and wraps order.ErrTryAgain: every call may be repeated.
//
// A Store is safe for concurrent use and keeps nothing but its connections.
// It imports seckill, order and migrations; GORM and the drivers are used nowhere else.
package sqlstore
