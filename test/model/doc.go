// Package model simulates the protocol of an order. API nodes reserve and publish. Redis restarts,
// is emptied, fails over and fails back. The broker has a queue per shard, and MySQL has
// transactions. Workers relay, write, release, reconcile and rebuild.
// Operators requeue dead letters.
//
// One seed is one schedule: the order and duration of all steps, one fault and its moment. After
// each step the model checks the guarantees that always hold: stock, limits, unique order numbers.
// Once the fault has ended and everything is drained it checks the rest: every promise is kept, and
// no unit leaked. Each rule of the protocol can be left out; the schedule that then violates a
// guarantee shows why the rule exists.
//
// One step is one atomic operation of the product: a script in Redis, a transaction in MySQL, a
// message that the broker accepts. Any event may happen between two steps. A tick is 100 ms. The
// republish age is shortened, so that schedules stay short. Scripts, SQL's isolation and AMQP have
// their own tests.
package model
