// Package outbox publishes reservations that RabbitMQ does not hold.
//
// The reserve script appends every reservation to the outbox of its goods in Redis. The purchase
// service publishes at once and removes the entry when RabbitMQ confirms the message. The Relay
// covers the cases in which that did not happen. Two events trigger it:
//
//   - A tick: it publishes outbox entries that are older than one second. Their API died between
//     reserving and publishing, or RabbitMQ was down.
//   - A new queue: it publishes every pending reservation of that queue's shard. A broker that
//     lost its data has lost messages that it confirmed.
//
// The Publisher holds the steps without the triggers. Reconciler and rebuilder use it too.
//
// Several processes may run a Relay. A message that is published twice is written once, because
// the order number is unique in MySQL.
package outbox
