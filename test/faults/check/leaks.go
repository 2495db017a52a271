package check

// leaks checks G4: every unit is in one place, all places agree, and no work is under way.
func (j *judge) leaks() {
	r := j.h.Redis
	j.equal("G4", "units pending in Redis", r.Pending, 0)
	j.equal("G4", "entries pending in Redis", int64(r.PendingEntries), 0)
	j.equal("G4", "entries in the outbox", int64(r.OutboxEntries), 0)
	j.equal("G4", "messages in the queues", int64(j.h.Queued), 0)
	j.equal("G4", "pending stock moves", int64(j.h.PendingMoves), 0)
	j.equal("G4", "Redis' total", r.Total, j.h.Sale.Units)
	j.equal("G4", "units available and sold in Redis", r.Available+r.Sold, j.h.Sale.Units)
	j.equal("G4", "units sold in Redis", r.Sold, j.units)
	j.equal("G4", "units available in Redis", r.Available, j.h.Sale.Stock)
	if !r.Balanced {
		j.violated("G4", "the ledger does not balance")
	}
	j.equalHoldings("G4", "Redis' holdings", r.Holdings)
	if dead := len(j.h.DeadLetters) + j.h.DeadQueued; dead > j.allow.DeadLetters {
		j.violated("G4", "%d dead letters: %v, and %d in the broker",
			dead, j.h.DeadLetters, j.h.DeadQueued)
	}
}
