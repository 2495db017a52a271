// Package rebuild builds a sale in Redis from MySQL under a new epoch.
//
// A rebuild runs when Redis lost a sale, restarted, or failed over. The Rebuilder shuts the sale's
// gate, waits until publishers have finished, publishes the outbox and everything pending, and
// sends a barrier through the queue. When the barrier is recorded in MySQL, every earlier order is
// written. The Opener then begins the next epoch in MySQL and loads it into Redis. Where Redis
// cannot fail over, the load opens the gate. Elsewhere the Opener records the opening in MySQL and
// opens the gate for a time, and the Renewer renews it. The Opener reads and stages the orders page
// by page, so that memory does not grow with them. The Worker finds the sales that need a rebuild.
//
// A lock in Redis keeps two rebuilders of one sale apart. A fencing token in MySQL stops a
// rebuilder that has lost the lock without noticing. The Retirer removes sales from Redis that are
// over and drained. Several processes may run Worker and Retirer.
package rebuild
