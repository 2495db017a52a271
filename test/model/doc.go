// Package model is a deterministic simulation of the way of an order, as internal/order, internal/redisstore, scripts/lua
// and internal/sqlstore implement it: API nodes, a Redis that restarts, is emptied, fails over and fails back, a broker
// with a queue per shard, a MySQL with transactions, and everything that relays, writes, rebuilds, gives back and audits.
//
// One seed is one schedule: who steps next, how long each step takes, which single fault strikes and when. After each
// step the guarantees that hold always are checked (no unit too many, no buyer over the limit, no number twice); after the
// fault is healed and all is drained, the rest (every promise kept, nothing leaked). Each rule of the design can be left
// out, one at a time; a schedule that then breaks a guarantee is what the rule is for.
//
// What is one step here is one atomic thing there: a script in Redis, a transaction in MySQL, a message that the broker
// takes. Between two steps anything may happen. A tick is 100 ms, but the feed's age and the lock's life are shortened, so
// that a schedule stays short. The scripts themselves, SQL's isolation and AMQP are not in it: their own tests hold them.
package model
