// Package rebuild builds a sale in Redis from MySQL under a new epoch.
//
// A rebuild runs when Redis lost a sale, restarted, or failed over. It shuts the sale's gate,
// waits until publishers have finished, publishes the outbox and everything pending, and sends a
// barrier through the queue. When the barrier is recorded in MySQL, every earlier order is
// written. The rebuild then begins the next epoch in MySQL and loads its snapshot into Redis,
// which opens the gate.
//
// A lock in Redis keeps two rebuilders of one sale apart. A fencing token in MySQL makes a
// rebuilder harmless that lost the lock and does not know it. The Retirer removes sales from Redis
// that are over and drained.
package rebuild
