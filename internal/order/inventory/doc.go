// Package inventory serves merchants' changes of sales and keeps Redis' stock in step with MySQL's.
//
// Every change of stock is a row in MySQL before Redis hears of it: a stock move for units that go
// back on sale, a stock cut for units that a merchant withdraws. The StockReleaser applies stock
// moves to Redis, each once, by its id. The ChangeSyncer completes changes whose process died
// between MySQL and Redis. Several processes may run both workers.
package inventory
