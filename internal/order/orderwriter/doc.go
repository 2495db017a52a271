// Package orderwriter consumes order messages and writes them to MySQL.
//
// A Consumer collects deliveries into batches. The Writer groups a batch by goods and writes each
// goods in one transaction, for several goods at a time. It inserts the rows and lowers the stock
// by a versioned compare-and-swap. After the commit it settles the orders in Redis, and only then
// acknowledges their messages. A crash at any point repeats messages, and repeated messages are
// recognised by their order number.
//
// The Writer retries infrastructure errors in a new transaction until they end. It isolates an
// order that MySQL refuses by bisection and stores it as a dead letter. A late order, of an older
// epoch, needs units of the present one: the Writer has Redis adopt it before it writes it. Where
// no gate is open, it parks the order in MySQL. The next epoch begins with the parked orders, and
// the Adopter tries again for those that were parked after that.
package orderwriter
