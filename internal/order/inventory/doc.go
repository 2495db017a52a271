// Package inventory serves merchants' changes of sales and keeps Redis' stock in step with MySQL's.
//
// MySQL stores every change of stock as a row before Redis applies it. A stock move holds units
// that return to the sale, and a stock cut holds units that a merchant withdraws. The StockReleaser
// applies stock moves to Redis, each once, by its id. The ChangeSyncer completes changes whose
// process died between MySQL and Redis. Several processes may run both workers.
package inventory
