package model

// Rule is one rule of the protocol, which a schedule can leave out.
type Rule int

// The rules, in the order of an order's path.
const (
	None Rule = iota
	// The API makes order numbers. A counter in Redis repeats numbers after it lost writes.
	OrderNumbersByAPI
	// One script checks and reserves, so that no other reservation comes in between.
	AtomicReserve
	// The script judges a group one by one: a path that the group has twice is one order.
	GroupInOrder
	// The reserve script compares the sale's window with Redis' clock, which all APIs share.
	RedisClock
	// The script that reserves also writes the message to the outbox. The relay publishes the
	// outbox of a dead API.
	Outbox
	// The relay publishes entries whose time is ahead of Redis' clock: it was set back since.
	OutboxByAge
	// A confirm deletes its own outbox entry. Trimming by length deletes unpublished ones.
	OutboxTrimmedByID
	// An order is pending until MySQL's commit, not until the broker's confirm.
	CommitEndsPending
	// The reconciler republishes only orders that are older than any normal delay, so that a slow
	// queue does not grow.
	RepublishAge
	// A message that the broker returns as unroutable counts as not confirmed.
	ReturnIsNack
	// The consumer settles in Redis after the commit: a crash in between repeats the batch.
	SettleAfterCommit
	// The consumer acknowledges after the commit, so that the broker redelivers uncommitted orders.
	AckAfterCommit
	// The batch writer checks which order numbers MySQL has, because messages are repeated.
	ExistingNumbersChecked
	// Duplicates are identified by number. A count of affected rows does not identify the new ones.
	DuplicatesByNumber
	// Transactions lock the stock row or compare its version before they write it.
	LockedStock
	// A rejected batch is written in halves, so that one bad order fails alone.
	BatchSplit
	// The consumer repeats a failed transaction itself. Requeueing would exhaust the delivery
	// limit of good orders during an outage.
	RetryInPlace
	// A sale is open only under the replication id that loaded it: a restarted or promoted Redis
	// closes every gate.
	Lease
	// Each sale has a lease. One marker for all sales reopens those not yet rebuilt.
	LeasePerSale
	// Scripts of every release that runs beside others check the lease.
	LeaseInEveryRelease
	// A load never replaces a newer epoch.
	EpochInLoad
	// A load is rejected below the fence, which a rebuild raises over all earlier epochs.
	LoadFenced
	// A load refuses unless all is there that the rebuild has staged: Redis may have been emptied
	// meanwhile, or be another one.
	StagedCounted
	// Redis adopts late orders only behind an open gate of MySQL's epoch: behind a shut one it
	// takes the units of a pending order, or those of an image that is replaced.
	AdoptWhileOpen
	// Adoption respects the buyer's limit, or a newer order of the buyer fails in MySQL.
	AdoptWithinLimit
	// Of two rebuilders at once only the one with the newer token may begin an epoch.
	FencingToken
	// A rebuild waits until the orders published before it are written.
	Barrier
	// A rebuild first waits for the publish deadline: until then an API may still publish.
	BarrierAfterDeadline
	// The barrier is a message. An empty queue may still have unacknowledged messages.
	BarrierThroughQueue
	// A rebuild republishes pending orders first, in case the broker has lost them.
	RepublishBeforeBarrier
	// A rebuild drains again while MySQL lacks a pending order: the broker may have lost it between
	// its republishing and the barrier.
	MissingDrainedAgain
	// Redis reserves units for an order of an older epoch before MySQL writes it.
	LateOrdersAdopted
	// A late order that Redis does not adopt is parked in MySQL. It does not wait for a shut gate,
	// whose rebuild may wait for the queue.
	LateOrdersNeverWait
	// A new epoch begins with the parked orders written, before anybody else can take their units.
	ParkedBeforeEpoch
	// A worker has the open epoch adopt the orders that were parked after it began.
	ParkedAdopted
	// Where Redis can fail over, MySQL records which Redis may have a gate open. A gate is open for
	// a short time only, and longer while MySQL has that record.
	OpeningInMySQL
	// A rebuild waits until a gate that it could not shut is open no longer.
	OpeningAwaited
	// The time of an opening counts from before MySQL's answer: a worker may sleep after it.
	OpeningFromBefore
	// A merchant's change brings the version of MySQL's row into Redis, which refuses an older one:
	// a slow amendment would open a closed sale.
	VersionInUpdate
	// A load of an older version than a change has brought is refused as well.
	VersionInLoad
	// Where Redis can fail over, a close is answered once the Redis has it that MySQL has open.
	CloseWhereOpen
	// A gate has a beginning as well, which each reservation moves: a clock that is set back would
	// keep the gate of a replaced master open for longer.
	OpenFrom
	// A cut of the stock takes its units from Redis first, which alone knows what is unsold.
	CutAsksRedis
	// A cut is a row in MySQL before Redis has it: a process may die in between.
	CutIsARow
	// A cut ends by the answer of MySQL's epoch. The load of a newer one had the units again.
	CutOfThisEpoch
	// Redis repeats its refusal of a cut: another process may ask again after units have returned.
	RefusedCutStays
	// A stock move is applied once, by its id.
	ReleaseByID
	// A stock move is skipped where a newer epoch was loaded with its units.
	ReleaseByEpoch
	// A release reduces the buyer's holding together with the stock.
	ReleaseWithHolding
	// Stock moves wait for an open gate: a promoted Redis may be replaced again.
	ReleaseUnderLease
	// MySQL counts each buyer's holding, because Redis may lose it.
	HoldingsInDB
	// A number whose units returned stays in the buyer's holding until its path has ended: the path
	// takes nothing again.
	EndedOrdersStay
	// A load includes every number whose path may still be used, also of orders that have ended.
	LoadUsablePaths
	// Redis' clock chooses these numbers. The clock of the worker that rebuilds may be hours ahead.
	LoadByRedisClock
	// A late order of which Redis has another quantity is void: its buyer repeated the path.
	AdoptByQuantity
	// An order is lost only after its path has expired. Until then its reservation may be made.
	LostAfterExpiry
	// A path that ends later than a new one is of another clock: its number may be forgotten.
	PathOfThisClock
	// The order query reads pending between two views of one epoch, and MySQL afterwards: a
	// reservation or a rebuild may come in between.
	SecondRead
	// A purchase is answered 202 only after a confirm, or where the broker is known to be down.
	PromiseOnConfirm
	// A repeated path is answered 202 only while its order is pending or has a row: Redis may have
	// lost it after the script answered.
	RepeatHasRow
	// A path whose order is parked is answered 503, because that order may still fail.
	ParkedUndecided
	// The order query inserts a row before it answers that an order is lost. The late message finds
	// that row.
	TombstoneBeforeAnswer
	// Tombstones are kept for longer than a message may take.
	TombstonesKept
	// A late order that finds its tombstone releases the units that were adopted for it.
	TombstoneReleases
	// A parked order that MySQL refuses becomes failed before an epoch begins: it would keep the
	// sale shut.
	ParkedRefused
	// Only an order with a row is requeued: another one may be pending, and its message comes
	// again.
	RequeueNeedsRow
	// Only a failed order is requeued. The planned return of another one would release units that
	// are sold, or its settling would count units that a second requeue has taken.
	RequeueOfFailed
	// The stock moves of a failed order are applied before its units are taken again.
	FailedMovesFirst
	// The return of the units is written before Redis takes them: the process may die in between.
	ReturnPlanned
	// Redis takes units for a requeued order within its buyer's limit, or a newer order of the
	// buyer fails in MySQL.
	RequeueWithinLimit
	// A requeue ends before its planned return is due.
	RequeueDeadline
	// The releaser locks the move of a failed order while Redis applies it. The commit of a requeue
	// may last until the move is due.
	MoveLocked
	// The transaction that restores an order deletes the planned return, or does nothing.
	RestoreRemovesReturn
	// An order is restored only in the epoch in which Redis took its units.
	RestoreInEpoch
	// An order is restored only while its dead letter exists: an operator may have discarded it.
	RestoreUndiscarded
	// The reconciler returns the units that Redis has pending for an order that is final.
	UnitsOfFinal
	// It does so in a transaction that reads the order again: an operator may have requeued it.
	ReturnOfFinal
	lastRule
)

// names has, for each rule, the protocol's behaviour without it.
var names = [...]string{
	None:                   "all rules kept",
	OrderNumbersByAPI:      "order numbers by INCR in Redis",
	AtomicReserve:          "check and reserve in two calls",
	GroupInOrder:           "a group judged by the orders before it",
	RedisClock:             "sale window by the API's clock",
	Outbox:                 "no outbox",
	OutboxByAge:            "outbox entries ahead of the clock are not old",
	OutboxTrimmedByID:      "outbox trimmed by length",
	CommitEndsPending:      "the confirm ends pending",
	RepublishAge:           "pending orders republished at any age",
	ReturnIsNack:           "a returned message counts as confirmed",
	SettleAfterCommit:      "settled before the commit",
	AckAfterCommit:         "acknowledged before the commit",
	ExistingNumbersChecked: "existing order numbers not checked",
	DuplicatesByNumber:     "duplicates counted by affected rows",
	LockedStock:            "no lock and no compare-and-swap on the stock",
	BatchSplit:             "a batch with a bad order rejected whole",
	RetryInPlace:           "database errors nacked, delivery limit 5",
	Lease:                  "no lease",
	LeasePerSale:           "the script cache as the lease of all sales",
	LeaseInEveryRelease:    "scripts of an older release without the lease",
	EpochInLoad:            "load accepts any epoch",
	LoadFenced:             "load checks the epoch and not the fence",
	StagedCounted:          "load takes the buyers that are staged",
	AdoptWhileOpen:         "late orders adopted behind a shut gate and by other epochs",
	AdoptWithinLimit:       "late orders adopted beyond the buyer's limit",
	FencingToken:           "no fencing token in MySQL and no fence in load",
	Barrier:                "no barrier",
	BarrierAfterDeadline:   "barrier before the publish deadline has passed",
	BarrierThroughQueue:    "an empty queue as the barrier",
	RepublishBeforeBarrier: "pending orders not republished before the barrier",
	MissingDrainedAgain:    "an epoch begun although MySQL lacks pending orders",
	LateOrdersAdopted:      "late orders written without a reservation",
	LateOrdersNeverWait:    "late orders wait for the gate before the barrier",
	ParkedBeforeEpoch:      "an epoch that begins without the parked orders",
	ParkedAdopted:          "parked orders not adopted by an open epoch",
	OpeningInMySQL:         "no record of the opening in MySQL",
	OpeningAwaited:         "a rebuild does not wait for the end of an opening",
	OpeningFromBefore:      "an opening counted from after MySQL's answer",
	VersionInUpdate:        "an older change of a merchant replaces a newer one",
	VersionInLoad:          "load of an older version than a merchant's change has brought",
	CloseWhereOpen:         "a close answered by whatever Redis the API talks to",
	OpenFrom:               "openings without a beginning",
	CutAsksRedis:           "units withdrawn by MySQL's stock",
	CutIsARow:              "units withdrawn without a row in MySQL",
	CutOfThisEpoch:         "a withdrawal by the answer of an older epoch",
	RefusedCutStays:        "a refused withdrawal decided again",
	ReleaseByID:            "releases without an id",
	ReleaseByEpoch:         "releases without an epoch",
	ReleaseWithHolding:     "releases without the buyer's holding",
	ReleaseUnderLease:      "releases behind a shut gate or without the lease",
	HoldingsInDB:           "no holdings in the database",
	EndedOrdersStay:        "numbers forgotten when their units return",
	LoadUsablePaths:        "only active orders loaded",
	LoadByRedisClock:       "usable paths by the rebuilder's clock",
	AdoptByQuantity:        "late orders adopted whatever quantity Redis has",
	LostAfterExpiry:        "failed answered before the path has expired",
	PathOfThisClock:        "paths of a clock that was set back",
	SecondRead:             "failed answered without a second read of Redis and MySQL",
	PromiseOnConfirm:       "202 without a confirm in time",
	RepeatHasRow:           "a repeated path answered without its order",
	ParkedUndecided:        "202 for a parked order",
	TombstoneBeforeAnswer:  "no tombstone before an order is answered as lost",
	TombstonesKept:         "tombstones deleted at once",
	TombstoneReleases:      "units adopted for a tombstone not released",
	ParkedRefused:          "an epoch that waits for a parked order which MySQL refuses",
	RequeueNeedsRow:        "a dead letter without a row requeued",
	RequeueOfFailed:        "a dead letter of a written order requeued",
	FailedMovesFirst:       "a dead letter requeued before its units have returned",
	ReturnPlanned:          "units taken for a requeue without a planned return",
	RequeueWithinLimit:     "a dead letter requeued beyond its buyer's limit",
	RequeueDeadline:        "a requeue without a deadline",
	MoveLocked:             "the return of a requeue applied while the requeue commits",
	RestoreRemovesReturn:   "an order restored whatever became of its planned return",
	RestoreInEpoch:         "an order restored in a newer epoch than that of its units",
	RestoreUndiscarded:     "an order restored whose dead letter was discarded",
	UnitsOfFinal:           "pending units of a final order kept",
	ReturnOfFinal:          "pending units returned of an order that was requeued meanwhile",
}

// String returns the protocol's behaviour without the rule.
func (r Rule) String() string { return names[r] }

// Rules lists every rule that can be left out.
func Rules() []Rule {
	var all []Rule
	for r := None + 1; r < lastRule; r++ {
		all = append(all, r)
	}
	return all
}
