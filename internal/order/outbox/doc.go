// Package outbox publishes reservations that RabbitMQ does not hold.
//
// The reserve script appends every reservation to the outbox of its goods in Redis. The purchase
// service publishes at once and removes the entry when RabbitMQ confirms the message. Two workers
// cover the cases in which that did not happen:
//
//   - The Relay publishes outbox entries that are older than one second. Their API died between
//     reserving and publishing, or RabbitMQ was down.
//   - The Republisher publishes every pending reservation of a shard whose queue is new. A broker
//     that lost its data has lost messages that it confirmed.
//
// Several processes may run both. A message that is published twice is written once, because the
// order number is unique in MySQL.
package outbox
